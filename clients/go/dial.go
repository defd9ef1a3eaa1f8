package millrace

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	heartbeatEvery = 10 * time.Second // of AMQP
	dialTimeout    = 3 * time.Second  // to connect and to log in, each host
	firstPause     = 100 * time.Millisecond
	longestPause   = 5 * time.Second
)

// pauses is how long to wait between attempts: doubled each time, and not the same for everybody.
type pauses struct{ next time.Duration }

func (p *pauses) wait(ctx context.Context) error {
	p.next = min(max(2*p.next, firstPause), longestPause)
	timer := time.NewTimer(time.Duration(float64(p.next) * (0.5 + rand.Float64()/2)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dial connects to an address of the host that a URL names. TLS checks that name.
func dial(ctx context.Context, url, address string, config amqp.Config) (*amqp.Connection, error) {
	config.Dial = func(network, _ string) (net.Conn, error) {
		deadline := time.Now().Add(dialTimeout)
		d := net.Dialer{Deadline: deadline}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn, conn.SetDeadline(deadline) // of the handshake; the library lifts it
	}
	config.TLSClientConfig = config.TLSClientConfig.Clone() // the library writes the host's name into it
	return amqp.DialConfig(url, config)
}

// unwelcome tells whether the broker will not have us, however often we ask.
func unwelcome(err error) bool {
	var own *credentialsError
	if errors.As(err, &own) {
		return false
	}
	if errors.Is(err, amqp.ErrCredentials) || errors.Is(err, amqp.ErrSASL) || errors.Is(err, amqp.ErrVhost) {
		return true
	}
	var said *amqp.Error
	return errors.As(err, &said) && (said.Code == amqp.AccessRefused || said.Code == amqp.NotAllowed)
}

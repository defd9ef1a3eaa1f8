package millrace

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	heartbeatEvery = 10 * time.Second // of AMQP
	dialTimeout    = 3 * time.Second  // to connect and to log in, for each address
	firstPause     = 100 * time.Millisecond
	longestPause   = 5 * time.Second
)

// pauses are the waits between attempts. Each is twice the last one, and partly random, so that
// clients do not all try together.
type pauses struct{ last time.Duration }

func (p *pauses) next(longest time.Duration) time.Duration {
	p.last = min(max(2*p.last, firstPause), longest)
	return time.Duration(float64(p.last) * (0.5 + rand.Float64()/2))
}

func (p *pauses) wait(ctx context.Context) error { return sleep(ctx, p.next(longestPause)) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dial connects to an address of the host that a URL names. TLS checks the name of the host.
func dial(ctx context.Context, url, address string, config amqp.Config) (*amqp.Connection, error) {
	uri, err := amqp.ParseURI(url)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := tlsOf(uri, config.TLSClientConfig)
	if err != nil {
		return nil, err
	}
	var tlsConn *tls.Conn
	config.Dial = func(network, _ string) (net.Conn, error) {
		deadline := time.Now().Add(dialTimeout)
		d := net.Dialer{Deadline: deadline}
		raw, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := raw
		err = raw.SetDeadline(deadline) // for the handshakes; the library removes it
		if err == nil && tlsConfig != nil {
			tlsConn = tls.Client(raw, tlsConfig)
			conn, err = tlsConn, tlsConn.HandshakeContext(ctx)
		}
		if err != nil {
			raw.Close()
			return nil, err
		}
		return conn, nil
	}
	// TLS is made in Dial above: see alertOf.
	conn, err := amqp.DialConfig(strings.Replace(url, "amqps://", "amqp://", 1), config)
	if err != nil {
		return nil, alertOf(tlsConn, err)
	}
	return conn, nil
}

// tlsOf returns the TLS configuration of a connection: the program's, or that of the URL's
// parameters. It returns nil if the connection has no TLS.
func tlsOf(uri amqp.URI, given *tls.Config) (*tls.Config, error) {
	if uri.Scheme != "amqps" {
		return nil, nil
	}
	config := given.Clone()
	if config == nil {
		config = &tls.Config{ServerName: uri.ServerName, MinVersion: tls.VersionTLS12}
		if uri.CACertFile != "" {
			text, err := os.ReadFile(uri.CACertFile)
			if err != nil {
				return nil, fmt.Errorf("cacertfile: %w", err)
			}
			config.RootCAs = x509.NewCertPool()
			config.RootCAs.AppendCertsFromPEM(text)
		}
		if uri.CertFile != "" && uri.KeyFile != "" {
			certificate, err := tls.LoadX509KeyPair(uri.CertFile, uri.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("certfile and keyfile: %w", err)
			}
			config.Certificates = []tls.Certificate{certificate}
		}
	}
	if config.ServerName == "" {
		config.ServerName = uri.Host
	}
	return config, nil
}

// alertOf returns the TLS alert that ended a connection, or else the error of the library. With TLS
// 1.3 a broker refuses a client's certificate after the handshake. The library may read the alert
// before it writes, and then reports only that the connection is not open.
func alertOf(conn *tls.Conn, err error) error {
	if conn == nil || !errors.Is(err, amqp.ErrClosed) {
		return err
	}
	_, why := conn.Read(make([]byte, 1)) // returns the error of the library's own read once more
	if alert := (*net.OpError)(nil); errors.As(why, &alert) && alert.Op == "remote error" {
		return alert
	}
	return err
}

// unwelcome reports whether the broker refuses this client, so that it is useless to try again.
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

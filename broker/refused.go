package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// Reasons in a RefusedError.
const (
	RefusedLogin  = "login"  // wrong user or password
	RefusedVHost  = "vhost"  // there is no such virtual host
	RefusedAccess = "access" // the user has no permissions in the virtual host
)

// RefusedError is returned by Dial when a broker answered and refused the connection.
type RefusedError struct {
	Host        string // host and port of the broker
	User, VHost string
	Reason      string // one of the Refused constants
	Err         error  // the broker's words
}

func (e *RefusedError) Error() string {
	switch e.Reason {
	case RefusedVHost:
		return fmt.Sprintf("the broker at %s has no virtual host %q (%v)", e.Host, e.VHost, e.Err)
	case RefusedAccess:
		return fmt.Sprintf("user %q has no access to virtual host %q of the broker at %s (%v)", e.User, e.VHost, e.Host, e.Err)
	}
	return fmt.Sprintf("the broker at %s refused user %q or its password (%v)", e.Host, e.User, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// refusedFor returns why a broker refused a connection, and "" if err is no refusal. A limit on
// connections is no refusal, because a later attempt may succeed.
func refusedFor(err error) string {
	var said *amqp.Error
	if !errors.As(err, &said) {
		return ""
	}
	text := strings.ToLower(said.Reason)
	switch {
	case errors.Is(err, amqp.ErrCredentials), said.Server && said.Code == amqp.AccessRefused:
		return RefusedLogin
	case !said.Server || said.Code != amqp.NotAllowed || strings.Contains(text, "limit"):
		return ""
	case strings.Contains(text, "not found"):
		return RefusedVHost
	}
	return RefusedAccess
}

// Refusal returns why Dial failed, if every host that answered refused the connection. It ignores
// hosts that did not answer: they may be down, and would refuse too.
func Refusal(err error) *RefusedError {
	failures := []error{err}
	var several hosts.Errors
	if errors.As(err, &several) {
		failures = several
	}
	var first *RefusedError
	for _, failure := range failures {
		var refused *RefusedError
		switch {
		case errors.As(failure, &refused):
			if first == nil {
				first = refused
			}
		case isAnswer(failure):
			return nil
		}
	}
	return first
}

// isAnswer reports whether a host answered an attempt to connect that failed.
func isAnswer(err error) bool {
	var network net.Error // an unknown host name is one, too
	return !errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// The first bytes that a port sends, by protocol.
const (
	plainAMQP = "AMQP"
	plainHTTP = "HTTP"
	tlsAlert  = "\x15\x03"
)

// explainHandshake adds to the error of a handshake what the other end seems to be. first is what
// came from there first.
func explainHandshake(err error, scheme, first string) error {
	var problem string
	switch {
	case strings.HasPrefix(first, plainHTTP):
		problem = "it is an HTTP port: the management API's? The AMQP port is usually 5672, or 5671 with TLS"
	case scheme == "amqp" && strings.HasPrefix(first, tlsAlert):
		problem = "it is a TLS port: use amqps://"
	case scheme == "amqp" && first == "":
		problem = "it closed the connection without a word: no AMQP port (an HTTP or TLS port?), or a proxy whose broker is down"
	case scheme == "amqps" && strings.HasPrefix(first, plainAMQP):
		problem = "it is an AMQP port without TLS: use amqp://, or the TLS port, usually 5671"
	case scheme == "amqps" && first == "":
		problem = "it closed the connection without a word: no TLS port, or a proxy whose broker is down"
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", problem, err)
}

package broker

import (
	"fmt"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// lifetime ends once: when the connection is lost or closed.
type lifetime struct {
	done   chan struct{} // closed when the connection is gone and err is set
	closed chan struct{} // closed by Close
	work   sync.WaitGroup

	mu      sync.Mutex
	err     error
	closing bool
}

func newLifetime() lifetime {
	return lifetime{done: make(chan struct{}), closed: make(chan struct{})}
}

// Done is closed when the connection is gone, for any reason.
func (l *lifetime) Done() <-chan struct{} { return l.done }

// Err returns why the connection is gone, or nil while it is not.
func (l *lifetime) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *lifetime) isClosing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing
}

// begin registers a goroutine that Close waits for. The goroutine calls work.Done at its end.
func (l *lifetime) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return fmt.Errorf("broker: connection: %w", ErrClosed)
	}
	if l.err != nil {
		return l.err
	}
	l.work.Add(1)
	return nil
}

// beginClose notes that the caller closes the connection. A second call has no effect.
func (l *lifetime) beginClose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closing {
		l.closing = true
		close(l.closed)
	}
}

// end notes that the connection is gone. It calls lost first if the caller has not closed it.
func (l *lifetime) end(cause *amqp.Error, lost func()) {
	l.mu.Lock()
	closing := l.closing
	l.err = endOf("connection", closing, cause)
	l.mu.Unlock()
	if !closing {
		lost()
	}
	close(l.done)
}

// endOf returns the error that says why a connection, publisher or consumer ended.
func endOf(what string, closed bool, cause *amqp.Error) error {
	switch {
	case closed:
		return fmt.Errorf("broker: %s: %w", what, ErrClosed)
	case cause == nil:
		return fmt.Errorf("broker: %s: %w", what, ErrLost)
	case strings.Contains(cause.Reason, "low on disk space"):
		return fmt.Errorf("broker: %s: %w: %w: %w", what, ErrLost, ErrAlarm, cause)
	default:
		return fmt.Errorf("broker: %s: %w: %w", what, ErrLost, cause)
	}
}

// alarm is an alarm of the broker that blocks the connection.
type alarm struct {
	mu     sync.Mutex
	reason string
	since  time.Time // when it began; zero if there is none
}

func (a *alarm) set(b amqp.Blocking) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !b.Active:
		a.reason, a.since = "", time.Time{}
	case a.since.IsZero():
		a.reason, a.since = b.Reason, time.Now()
	default:
		a.reason = b.Reason
	}
}

func (a *alarm) lasts() (reason string, since time.Time, lasts bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reason, a.since, !a.since.IsZero()
}

package millrace

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// credentialsTimeout is how long a program may take to return credentials.
const credentialsTimeout = 30 * time.Second

// CredentialsFunc returns the user, and the password or token, of the next connection. They replace
// those of the URL.
//
// It is called for each connection, in its own goroutine. ctx ends after 30 seconds, and when the
// worker is stopped or the client is closed. It does not end with the context of an enqueue,
// because later enqueues use the connection too.
//
// If the function returns an error or panics, or if ctx ends, the attempt to connect fails. The
// next attempt calls the function again. If the earlier call has not returned, the next attempt
// waits for that call.
type CredentialsFunc func(ctx context.Context) (username, password string, err error)

// login is what a connection needs in addition to a URL.
type login struct {
	credentials CredentialsFunc
	tls         *tls.Config
}

// check returns an error if the login does not fit the URLs.
func (l login) check(urls []string) error {
	if l.tls != nil && slices.ContainsFunc(urls, func(u string) bool { return !strings.HasPrefix(u, "amqps://") }) {
		return errors.New("TLS needs an amqps:// URL")
	}
	return nil
}

// asking is a running call of a CredentialsFunc.
type asking struct {
	answered chan struct{} // closed when it has returned; then the rest is valid
	auth     *amqp.PlainAuth
	err      error
}

// ask returns the credentials for one attempt to connect. If an earlier call of the program's
// function is running, ask waits for that one. So a function that hangs costs only one goroutine.
func (h *hosts) ask(ctx context.Context) (*amqp.PlainAuth, error) {
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	a := h.call(ctx)
	select {
	case <-a.answered:
		return a.auth, a.err
	case <-ctx.Done(): // the function may ignore its context
		return nil, &credentialsError{fmt.Errorf("no answer: %w", ctx.Err())}
	}
}

// call returns the running call of the program's function, or starts one.
func (h *hosts) call(ctx context.Context) *asking {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking != nil {
		return h.asking
	}
	a := &asking{answered: make(chan struct{})}
	h.asking = a
	go protect(ctx, nil, func(ctx context.Context, _ *RawJob) error {
		username, password, err := h.login.credentials(ctx)
		a.auth = &amqp.PlainAuth{Username: username, Password: password}
		return err
	}, func(err error) {
		if err != nil {
			a.err = &credentialsError{err}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asking = nil
		close(a.answered)
	})
	return a
}

// isAsking reports whether a call of the program's function for credentials is running.
func (h *hosts) isAsking() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asking != nil
}

// credentialsError is an error of the program's function. The function is called again, even if its
// error looks like a refusal by the broker.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "credentials: " + e.err.Error() }

func (e *credentialsError) Unwrap() error { return e.err }

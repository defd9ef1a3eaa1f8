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

// CredentialsFunc returns the user and the password, or token, of the next connection. It replaces those of the URL.
//
// It is called for each connection, the first and each later one, in a goroutine of its own. ctx ends after 30 seconds, and when the worker is
// stopped or the client is closed; not with the context of an enqueue, for later enqueues use the connection too.
//
// If the function returns an error or panics, or if ctx ends, that attempt to connect fails, and the next one calls it again. A call that has
// not returned by then is not repeated: the next attempt waits for it.
type CredentialsFunc func(ctx context.Context) (username, password string, err error)

// login is what a connection needs beside a URL.
type login struct {
	credentials CredentialsFunc
	tls         *tls.Config
}

// check returns what is wrong with it for some URLs.
func (l login) check(urls []string) error {
	if l.tls != nil && slices.ContainsFunc(urls, func(u string) bool { return !strings.HasPrefix(u, "amqps://") }) {
		return errors.New("TLS needs an amqps:// URL")
	}
	return nil
}

// asking is a call of a CredentialsFunc.
type asking struct {
	answered chan struct{} // closed when it has returned; then the rest is valid
	auth     *amqp.PlainAuth
	err      error
}

// ask returns the credentials of one attempt to connect. While an earlier call of the program's function runs, it waits for that one: a
// function that hangs costs one goroutine, however many attempts there are.
func (h *hosts) ask(ctx context.Context) (*amqp.PlainAuth, error) {
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	a := h.call(ctx)
	select {
	case <-a.answered:
		return a.auth, a.err
	case <-ctx.Done(): // the function may not heed it
		return nil, &credentialsError{fmt.Errorf("no answer: %w", ctx.Err())}
	}
}

// call returns the call of the program's function that runs, or makes one.
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

// isAsking reports whether the program's function for credentials has been called and has not returned.
func (h *hosts) isAsking() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asking != nil
}

// credentialsError is a program's own error. Even if it looks like a refusal by the broker, the program is asked again.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "credentials: " + e.err.Error() }

func (e *credentialsError) Unwrap() error { return e.err }

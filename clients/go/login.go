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
// It is called for each connection, the first and each later one. ctx ends when the attempt to connect does: with the context of the enqueue
// that connects, when the worker is stopped, and after 30 seconds. If it returns an error, that attempt fails with it, and the next one calls
// it again.
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

// apply sets TLS and the credentials of one attempt to connect.
func (l login) apply(ctx context.Context, config *amqp.Config) error {
	config.TLSClientConfig = l.tls
	if l.credentials == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	type answer struct {
		auth *amqp.PlainAuth
		err  error
	}
	answered := make(chan answer, 1)
	go func() { // it may not heed ctx
		username, password, err := l.credentials(ctx)
		answered <- answer{&amqp.PlainAuth{Username: username, Password: password}, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return &credentialsError{a.err}
		}
		config.SASL = []amqp.Authentication{a.auth}
		return nil
	case <-ctx.Done():
		return &credentialsError{fmt.Errorf("no answer: %w", ctx.Err())}
	}
}

// credentialsError is a program's own error. Even if it looks like a refusal by the broker, the program is asked again.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return "credentials: " + e.err.Error() }

func (e *credentialsError) Unwrap() error { return e.err }

package gotest

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// vault is where a program gets credentials.
type vault struct {
	mu       sync.Mutex
	username string
	password string
	fault    error
	asked    map[string]int
}

func (v *vault) ask(who string) CredentialsFunc {
	return func(context.Context) (string, string, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.asked[who]++
		return v.username, v.password, v.fault
	}
}

func (v *vault) set(password string, fault error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.password, v.fault = password, fault
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The password changes, and the producer and the worker continue with the new one.
func TestCredentialsAreFetchedForEachConnection(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	user := v.AddUser(t, "rotating", brokertest.Permissions{})
	asked := &vault{username: user.Name, password: user.Password, asked: map[string]int{}}
	url := strings.Replace(user.AMQPURL(), user.Name+":"+user.Password+"@", "of-the-url:unused@", 1)
	require.NotContains(t, url, user.Password)

	log := &lines{}
	w := newTestWorker(t, WorkerConfig{URL: url, Credentials: asked.ask("worker"), Logger: slog.New(slog.NewTextHandler(log, nil))})
	w.Handle("A", w.says(nil), nil)
	w.start(t)
	c, err := NewClient(ClientConfig{URL: url, Credentials: asked.ask("client")})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Enqueue(t.Context(), Args("A", "before"), nil)
	require.NoError(t, err)
	w.said.has(t, "before")

	// An error of the function for credentials is not the broker's refusal, even if it has the same
	// type: the function is called again.
	fault := fmt.Errorf("the vault is sealed: %w", amqp.ErrCredentials)
	asked.set("secret-two", fault)
	v.Do(t, http.MethodPut, "/api/users/"+user.Name, map[string]string{"password": "secret-two", "tags": ""}, nil)
	closeConnections(t, v, user.Name)
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		return strings.Count(log.String(), "trying again") >= 2 && strings.Contains(log.String(), "credentials: the vault is sealed")
	}, "the worker has failed twice")
	enqueueSoon := func(text string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Enqueue(ctx, Args("A", text), nil)
		return err
	}
	brokertest.Eventually(t, func() bool {
		return errors.Is(enqueueSoon("perhaps"), fault) // it may arrive: the client may not know yet that it has lost its connection
	}, "the client has failed")
	err = enqueueSoon("never")
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorIs(t, err, fault)
	require.ErrorContains(t, err, "credentials: the vault is sealed")

	asked.set("secret-two", nil)
	_, err = c.Enqueue(t.Context(), Args("A", "after"), nil)
	require.NoError(t, err)
	w.said.has(t, "after")
	w.idle(t, v, "default")
	require.NotContains(t, w.said.all(), "never")
	w.stop(t)
	require.NotContains(t, log.String(), "secret-")
	require.NotContains(t, log.String(), user.Password)
}

// closeConnections has the broker close the connections of a user, after it lists those of a client
// and a worker.
func closeConnections(t *testing.T, v *brokertest.Vhost, user string) {
	t.Helper()
	var found []struct{ Name, User string }
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		found = nil
		v.Do(t, http.MethodGet, "/api/vhosts/"+v.Name+"/connections", nil, &found)
		n := 0
		for _, c := range found {
			if c.User == user {
				n++
			}
		}
		return n == 2
	}, "the broker lists both connections")
	for _, c := range found {
		if c.User == user {
			v.Do(t, http.MethodDelete, "/api/connections/"+strings.NewReplacer(" ", "%20", ">", "%3E").Replace(c.Name), nil, nil)
		}
	}
}

// The first attempts of a client and a worker may fail with any error, or panic.
func TestCredentialsAfterErrors(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	uri, err := amqp.ParseURI(v.AMQPURL())
	require.NoError(t, err)
	late := func() CredentialsFunc {
		n := 0
		return func(context.Context) (string, string, error) {
			switch n++; n {
			case 1:
				return "", "", amqp.ErrCredentials
			case 2:
				panic("the vault is empty")
			case 3:
				runtime.Goexit()
			}
			return uri.Username, uri.Password, nil
		}
	}
	log := &lines{}
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), Credentials: late(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	w.Handle("A", w.says(nil), nil)
	w.start(t)
	c, err := NewClient(ClientConfig{URL: v.AMQPURL(), Credentials: late()})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Enqueue(t.Context(), Args("A", "late"), nil)
	require.NoError(t, err)
	w.said.has(t, "late")
	w.idle(t, v, "default")
	require.Contains(t, log.String(), "credentials: panic: the vault is empty")
	require.Contains(t, log.String(), "credentials: the function ended its goroutine")
}

// A function that takes longer than enqueues wait is called once, and the connection serves a later
// enqueue.
func TestSlowCredentials(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	uri, err := amqp.ParseURI(v.AMQPURL())
	require.NoError(t, err)
	var calls atomic.Int32
	release := make(chan struct{})
	slow := func(ctx context.Context) (string, string, error) {
		calls.Add(1)
		select {
		case <-release:
			return uri.Username, uri.Password, nil
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
	}
	c, err := NewClient(ClientConfig{URL: v.AMQPURL(), Credentials: slow, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	defer c.Close()
	brokertest.Eventually(t, func() bool {
		_, err := c.Enqueue(t.Context(), Args("A"), nil)
		require.ErrorIs(t, err, ErrUnreachable)
		return calls.Load() > 0
	}, "the function is called")
	for range 3 {
		_, err = c.Enqueue(t.Context(), Args("A"), nil)
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorContains(t, err, "credentials: no answer")
	}
	require.EqualValues(t, 1, calls.Load())

	close(release)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = c.Enqueue(ctx, Args("A"), nil)
	require.NoError(t, err)
}

// An enqueue that waits for a connection ends when its client is closed, and so does the context of
// the function for credentials.
func TestCloseWhileWaitingForCredentials(t *testing.T) {
	t.Parallel()
	called := make(chan struct{})
	hang := func(ctx context.Context) (string, string, error) {
		close(called)
		<-ctx.Done()
		return "", "", ctx.Err()
	}
	c, err := NewClient(ClientConfig{Credentials: hang, Timeout: time.Hour})
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := c.Enqueue(context.Background(), Args("A"), nil)
		ended <- err
	}()
	<-called
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-ended, ErrClosed)
}

// A function that never returns delays neither an enqueue beyond its deadline nor the stop of a
// worker.
func TestCredentialsThatHang(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	hang := func(context.Context) (string, string, error) {
		<-never
		return "", "", errors.New("over")
	}
	defer close(never)
	c, err := NewClient(ClientConfig{Credentials: hang, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	defer c.Close()
	brokertest.Eventually(t, func() bool { // the first enqueue may end before the function is called
		_, err := c.Enqueue(t.Context(), Args("A"), nil)
		require.ErrorIs(t, err, ErrUnreachable)
		return strings.Contains(err.Error(), "credentials: no answer")
	}, "the error says what the enqueue waited for")
	w := newTestWorker(t, WorkerConfig{Credentials: hang})
	w.start(t)
	w.stop(t)
}

// Credentials that the broker refuses end the first attempt, as those of a URL do.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	wrong := func(context.Context) (string, string, error) { return "guest", "wr0ng", nil }
	err := NewWorker(WorkerConfig{URL: v.AMQPURL(), Credentials: wrong, Logger: slog.New(slog.DiscardHandler)}).Run(t.Context())
	require.ErrorContains(t, err, "turns us away")
	require.ErrorIs(t, err, amqp.ErrCredentials)
	require.NotContains(t, err.Error(), "wr0ng")
	c, err := NewClient(ClientConfig{URL: v.AMQPURL(), Credentials: wrong})
	require.NoError(t, err)
	_, err = c.Enqueue(t.Context(), Args("A"), nil)
	require.ErrorIs(t, err, ErrUnreachable)
}

// A broker that requires client certificates accepts clients that have one.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	server, own := brokertest.NewCertificate(t, "127.0.0.1"), brokertest.NewCertificate(t, "client")
	url := server.FrontForClientsWith(t, own, v.AMQPURL(), "amqps")
	config := own.ClientConfig()
	config.RootCAs = server.Config().RootCAs

	w := newTestWorker(t, WorkerConfig{URL: url, TLS: config})
	w.Handle("A", w.says(nil), nil)
	w.start(t)
	c, err := NewClient(ClientConfig{URL: url, TLS: config})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Enqueue(t.Context(), Args("A", "by TLS"), nil)
	require.NoError(t, err)
	w.said.has(t, "by TLS")
	require.Empty(t, config.ServerName, "the program's configuration stays as it is")

	key, err := x509.MarshalPKCS8PrivateKey(config.Certificates[0].PrivateKey)
	require.NoError(t, err)
	keyFile := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	_, err = client(t, url+"?cacertfile="+server.File+"&certfile="+own.File+"&keyfile="+keyFile).Enqueue(t.Context(), Args("A", "by the URL"), nil)
	require.NoError(t, err)
	w.said.has(t, "by the URL")

	for text, cfg := range map[string]ClientConfig{
		"certificate required":          {URL: url, TLS: server.Config()},
		"certificate signed by unknown": {URL: url, TLS: own.ClientConfig()},
	} {
		cfg.Timeout = 2 * time.Second
		other, err := NewClient(cfg)
		require.NoError(t, err)
		defer other.Close()
		brokertest.Eventually(t, func() bool { // the first attempt may take longer than the enqueue waits
			_, err := other.Enqueue(t.Context(), Args("A", "never"), nil)
			require.ErrorIs(t, err, ErrUnreachable)
			return strings.Contains(err.Error(), text)
		}, "the error says %q", text)
	}
	w.stop(t)

	_, err = NewClient(ClientConfig{URL: v.AMQPURL(), TLS: config})
	require.ErrorContains(t, err, "TLS needs an amqps:// URL")
	require.Equal(t, err, NewWorker(WorkerConfig{URL: v.AMQPURL(), TLS: config}).Run(t.Context()))
}

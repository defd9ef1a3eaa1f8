package brokertest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { Main(m) }

func declare(t T, v *Vhost, queue string) {
	t.Helper()
	_, err := v.Channel(t).QueueDeclare(queue, true, false, false, false, nil)
	require.NoError(t, err)
}

func message(body string) amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)}
}

func TestVhostsAreSeparate(t *testing.T) {
	a, b := New(t), New(t)
	require.NotEqual(t, a.Name, b.Name)
	declare(t, a, "q")
	declare(t, b, "q")
	a.Publish(t, "", "q", message("one"), message("two"))
	require.Equal(t, 2, a.QueueLength(t, "q"))
	require.Equal(t, 0, b.QueueLength(t, "q"))
	d, ok := a.Get(t, "q")
	require.True(t, ok)
	require.Equal(t, "one", string(d.Body))
	_, ok = b.Get(t, "q")
	require.False(t, ok)

	url := a.AMQPURL()[:len(a.AMQPURL())-len(a.Name)] + b.Name
	_, err := amqp.Dial(url)
	require.Error(t, err, "the owner of one vhost has access to another")
}

func TestCleanupRemovesEverything(t *testing.T) {
	var v *Vhost
	var u *User
	require.True(t, t.Run("a test with a long name / and strange signs: äöü, 日本語, and so on", func(t *testing.T) {
		v = New(t)
		u = v.AddUser(t, "guest", Permissions{})
		declare(t, v, "q")
		v.DeclareStream(t, "s")
	}))
	for _, path := range []string{"/api/vhosts/" + v.Name, "/api/users/" + u.Name, "/api/users/" + v.Owner.Name} {
		err := v.Try(t.Context(), http.MethodGet, path, nil, nil)
		require.True(t, isMissing(err), "%v", err)
	}
}

func TestVhostMayBeDeletedByTest(t *testing.T) {
	v := New(t)
	v.Do(t, http.MethodDelete, "/api/vhosts/"+v.Name, nil, nil)
}

func TestPermissions(t *testing.T) {
	v := New(t)
	declare(t, v, "open")
	declare(t, v, "closed")
	u := v.AddUser(t, "worker", Permissions{Configure: "^$", Write: "^open$|^amq.default$", Read: "^open$"})
	ch, err := u.Dial(t).Channel()
	require.NoError(t, err)
	_, err = ch.Consume("closed", "", true, false, false, false, nil)
	require.ErrorContains(t, err, "403")

	var self struct{ Name string }
	root := u.vhost.server.management
	require.Error(t, call(t.Context(), root, http.MethodGet, "/api/nonsense", nil, nil))
	v.Do(t, http.MethodGet, "/api/users/"+u.Name, nil, &self)
	require.Equal(t, u.Name, self.Name)
	require.Error(t, v.Try(t.Context(), http.MethodGet, "/api/overview", nil, new(int)), "an object is no number")
	require.Error(t, v.Try(t.Context(), http.MethodPut, "/api/vhosts/x", func() {}, nil), "a function is no JSON")
	require.Error(t, v.Try(t.Context(), "NO METHOD", "/", nil, nil))
}

func TestReadStream(t *testing.T) {
	v := New(t)
	v.DeclareStream(t, "s")
	require.Empty(t, v.ReadStream(t, "s"))
	const n = 2500 // more than the prefetch, and several chunks
	for batch := range 5 {
		var messages []amqp.Publishing
		for i := range n / 5 {
			messages = append(messages, message(fmt.Sprint(batch*n/5+i)))
		}
		v.Publish(t, "", "s", messages...)
	}
	records := v.ReadStream(t, "s")
	require.Len(t, records, n)
	for i, d := range records {
		require.Equal(t, fmt.Sprint(i), string(d.Body))
		require.Equal(t, Offset(records[0])+int64(i), Offset(d))
	}
	require.Equal(t, int64(-1), Offset(amqp.Delivery{}))
}

func TestKillAndRestart(t *testing.T) {
	v := Own(t)
	require.True(t, v.CanKill())
	declare(t, v, "q")
	v.DeclareStream(t, "s")
	v.Publish(t, "", "q", message("kept"))
	v.Publish(t, "", "s", message("kept too"))
	v.Sync(t)
	conn := v.Dial(t)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	v.Kill(t)
	require.Error(t, <-closed)
	_, err := amqp.Dial(v.AMQPURL())
	require.Error(t, err)
	v.Restart(t)
	require.Equal(t, 1, v.QueueLength(t, "q"))
	require.Len(t, v.ReadStream(t, "s"), 1)
	v.Stop(t)
}

func TestErlang(t *testing.T) {
	v := Erlang(t)
	require.Equal(t, "3", v.Eval(t, "1 + 2."))
	require.NotEmpty(t, v.StreamURL())
}

func TestEventually(t *testing.T) {
	n := 0
	Eventually(t, func() bool { n++; return n == 3 }, "three")
	require.Equal(t, 3, n)

	failed := watch(t.Context(), func(t T) {
		EventuallyWithin(t, time.Millisecond, func() bool { return false }, "the %s", "impossible")
	})
	require.Contains(t, failed, "not within 1ms: the impossible")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	failed = watch(ctx, func(t T) { Eventually(t, func() bool { return false }, "x") })
	require.Contains(t, failed, "the test ended while waiting: x")
}

func TestFailuresAreDetected(t *testing.T) {
	v := New(t)
	require.NotEmpty(t, watch(t.Context(), func(t T) { v.ReadStream(t, "missing") }))
	require.NotEmpty(t, watch(t.Context(), func(t T) { v.QueueLength(t, "missing") }))
	require.NotEmpty(t, watch(t.Context(), func(t T) { v.Do(t, http.MethodGet, "/api/missing", nil, nil) }))
	v.Channel(t)
	ch := v.Channel(t)
	_, err := ch.QueueDeclare("full", true, false, false, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	require.NoError(t, err)
	failed := watch(t.Context(), func(t T) { v.Publish(t, "", "full", message("1"), message("2"), message("3")) })
	require.Contains(t, failed, "the broker refused a message")
}

// watch runs a function that should fail, and returns the failure.
func watch(ctx context.Context, run func(T)) string {
	r := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(r)
	}()
	<-done
	for _, f := range r.cleanups {
		f()
	}
	return r.text
}

// recorder is a test that may fail.
type recorder struct {
	ctx      context.Context
	text     string
	cleanups []func()
}

func (r *recorder) Helper()                           {}
func (r *recorder) Context() context.Context          { return r.ctx }
func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(string, ...any)               {}
func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }
func (r *recorder) FailNow()                          { runtime.Goexit() }

func TestFeaturesMatchBroker(t *testing.T) {
	v := New(t)
	require.Equal(t, v.StreamURL() != "", v.Features(t).NativeStreamProtocol)
}

func TestErlangNodeNameOfGivenServer(t *testing.T) {
	require.Equal(t, "3", Erlang(t).Eval(t, "1 + 2."))
}

// Debian's RabbitMQ 4 allows transient queues. The one from scripts/rabbitmq4.sh refuses them, as
// RabbitMQ does by default.
func TestRabbitMQ4DeniesTransientQueues(t *testing.T) {
	if os.Getenv(envRabbitMQ) == "" {
		t.Skip("this test needs a RabbitMQ 4, which " + envRabbitMQ + " names")
	}
	v := New(t)
	_, err := v.Channel(t).QueueDeclare("transient", false, false, false, false, nil)
	require.Error(t, err)
	_, err = v.Channel(t).QueueDeclare("exclusive", false, false, true, false, nil)
	require.NoError(t, err, "exclusive queues are allowed")
}

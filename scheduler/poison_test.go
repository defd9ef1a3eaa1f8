package scheduler_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// unharmed requires that all others are served, and that the epoch has not ended.
func unharmed(t *testing.T, v *brokertest.Vhost, s *sidecar, fine *worker, jid string) {
	t.Helper()
	schedule(t, v, time.Now(), "fine", jid)
	v.Publish(t, wire.ExchangeDirect, "fine", amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","jid":"direct-%s"}`, jid)})
	fine.gets(t, jid, "direct-"+jid)
	require.Equal(t, int64(1), s.Status().Counters.Epochs)
	require.Zero(t, s.Status().Counters.Lost)
}

func rejects(t *testing.T, s *sidecar, stream string) (all []tracker.Reject) {
	t.Helper()
	require.NoError(t, s.entries.Rejects(stream, func(r tracker.Reject) bool { all = append(all, r); return true }))
	return all
}

// A name that the broker does not take as a property is left out of the properties. The body of the
// job has it.
func TestInvalidPropertiesAreLeftOut(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	w := work(t, v, "q", nil)
	long := strings.Repeat("ü", 300)
	jids := []string{long, long + "2", "plain", "amqp", "long-class", "amqp-1.0", "ctrl\u0001\u0000"}
	for i, class := range []string{"C", "C", "C", "amqp-1.0", long, "amqp-1.0", "\u0000"} {
		body := fmt.Appendf(nil, `{"jid":%s,"scheduled_at":%d,"job":{"class":%s,"args":[],"queue":"q"}}`, quote(jids[i]), i, quote(class))
		v.Publish(t, "", wire.ScheduledJobs, amqp.Publishing{Body: body, DeliveryMode: amqp.Persistent})
	}
	w.gets(t, jids...)
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.ScheduledJobs) == 0 }, "they are settled")
	unharmed(t, v, s, work(t, v, "fine", nil), "other")
	require.Empty(t, rejects(t, s, wire.ScheduledJobs))
}

func quote(s string) string {
	return `"` + strings.NewReplacer("\u0000", `\u0000`, "\u0001", `\u0001`).Replace(s) + `"`
}

// The broker closes a connection that declares an invalid queue name. Such names are never
// declared.
func TestImpossibleQueueNames(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	keys := []string{"q\xff", strings.Repeat("x", 201), "tab\t", ""}
	for i, key := range keys {
		v.Publish(t, wire.ExchangeRoute, key, amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","jid":"unrouted-%d"}`, i)})
		body := fmt.Appendf(nil, `{"jid":"scheduled-%d","scheduled_at":1,"job":{"class":"C","queue":"%s"}}`, i, key)
		v.Publish(t, "", wire.ScheduledJobs, amqp.Publishing{Body: body})
	}
	unharmed(t, v, s, work(t, v, "fine", nil), "other")
	for _, stream := range []string{wire.Gated, wire.ScheduledJobs} {
		brokertest.Eventually(t, func() bool { return len(rejects(t, s, stream)) == len(keys) }, "what went to %s is listed", stream)
		for _, r := range rejects(t, s, stream) {
			require.Regexp(t, "queue|valid|control", r.Reason)
		}
	}
}

// Only the job is copied from a client's message. Its properties were valid for one publish, and
// may not be for another.
func TestClientPropertiesAreNotCopied(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	_, err := v.Channel(t).QueueDeclare("queue.b", true, false, false, false, amqp.Table{"x-max-priority": int32(10)})
	require.NoError(t, err)
	u := v.AddUser(t, "producer", brokertest.Permissions{})
	ch, err := u.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	for i, p := range []amqp.Publishing{
		{UserId: u.Name, AppId: "app", ReplyTo: "somewhere", ContentEncoding: "gzip"},
		{Expiration: "600000", Headers: amqp.Table{"x-death": "x", "x-stream-offset": int64(1)}},
		{Headers: amqp.Table{"t": time.Now(), "a": []any{"x"}}}, // RabbitMQ 3.10 closes the channel over a decimal, which a stream cannot store
		{Headers: amqp.Table{wire.HeaderOp: wire.OpFired, wire.HeaderStream: wire.ScheduledJobs, wire.HeaderReplaces: int64(0)}},
	} {
		p.Body, p.DeliveryMode = fmt.Appendf(nil, `{"class":"C","jid":"j-%d"}`, i), amqp.Persistent
		c, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), wire.Unrouted, "new", true, false, p)
		require.NoError(t, err)
		require.True(t, c.Wait())
	}
	brokertest.Eventually(t, func() bool { return v.HasQueue(t, "queue.new") && v.QueueLength(t, "queue.new") == 3 }, "they find their queue")
	for range 3 {
		d, ok := v.Get(t, "queue.new")
		require.True(t, ok)
		require.Equal(t, v.Owner.Name, d.UserId)
		sent, fired := wire.DispatchOf(d.Headers)
		require.True(t, fired)
		require.Equal(t, wire.Gated, sent.Stream, "the headers are Millrace's own")
		require.Len(t, d.Headers, len(sent.Headers()))
		require.Equal(t, "C", d.Type)
		require.Empty(t, d.Expiration+d.ReplyTo+d.ContentEncoding)
	}
	_, ok := v.Get(t, "queue.new")
	require.False(t, ok)
	require.Len(t, rejects(t, s, wire.Gated), 1, "it claims to replace another entry, which a client may not do")
	unharmed(t, v, s, work(t, v, "fine", nil), "other")
}

// A queue that cannot be created is held with its reason, and no other queue is held.
func TestQueueThatCannotBeCreatedIsHeld(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	fine := work(t, v, "fine", nil)
	owner := v.Dial(t)
	ch, err := owner.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("queue.theirs", false, false, true, false, nil)
	require.NoError(t, err)
	schedule(t, v, time.Now(), "theirs", names("theirs", 3)...)
	brokertest.Eventually(t, func() bool {
		h, held := heldQueue(s, "theirs")
		return held && strings.Contains(h.Reason, "exclusive")
	},
		"the queue is shown as held")
	unharmed(t, v, s, fine, "other-0")

	var there []struct{ Name string }
	v.Do(t, http.MethodGet, "/api/queues/"+v.Name+"?columns=name", nil, &there)
	v.Do(t, http.MethodPut, "/api/vhost-limits/"+v.Name+"/max-queues", map[string]int{"value": len(there)}, nil)
	v.Publish(t, wire.ExchangeDirect, "one-too-many", amqp.Publishing{Body: []byte(`{"class":"C","jid":"many-0"}`)})
	schedule(t, v, time.Now(), "one-too-many", "many-1")
	brokertest.Eventually(t, func() bool {
		h, held := heldQueue(s, "one-too-many")
		return held && strings.Contains(h.Reason, "limit")
	},
		"so is the one that the vhost has no room for")
	unharmed(t, v, s, fine, "other-1")
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.ScheduledJobs) == 4 }, "what waits is where it was")
	require.EqualValues(t, 1, s.entries.Total(wire.Gated))

	require.NoError(t, owner.Close())
	v.Do(t, http.MethodDelete, "/api/vhost-limits/"+v.Name+"/max-queues", nil, nil)
	brokertest.Eventually(t, func() bool { return len(s.Status().Held) == 0 }, "nothing is held")
	work(t, v, "theirs", nil).gets(t, names("theirs", 3)...)
	work(t, v, "one-too-many", nil).gets(t, "many-0", "many-1")
	require.Equal(t, int64(1), s.Status().Counters.Epochs)
}

// A job that a worker rejects is wrapped for the dead jobs, which makes it larger. A job that would
// become too large is not wrapped.
func TestLargeRejectedBodies(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "q")
	brokertest.Eventually(t, func() bool {
		var q struct{ Policy string }
		v.Do(t, http.MethodGet, "/api/queues/"+v.Name+"/queue.q", nil, &q)
		return q.Policy != ""
	}, "its dead letters are kept")
	garbage := bytes.Repeat([]byte{0xff}, 13<<20)
	large := fmt.Appendf(nil, `{"class":"Large","jid":"large","args":["%s"]}`, bytes.Repeat([]byte("x"), 16<<20-60))
	v.Publish(t, wire.ExchangeDirect, "q", amqp.Publishing{Body: garbage}, amqp.Publishing{Body: large})
	ch := v.Channel(t)
	for range 2 {
		d, ok, err := ch.Get("queue.q", false)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, d.Reject(false))
	}
	var dead []*tracker.Stored
	brokertest.Eventually(t, func() bool {
		var err error
		dead, err = s.entries.Find(wire.DeadJobs, "large")
		require.NoError(t, err)
		return len(rejects(t, s, wire.DeadLetters)) == 1 && len(dead) == 1
	}, "both are listed")
	r := rejects(t, s, wire.DeadLetters)[0]
	require.EqualValues(t, len(garbage), r.Size)
	require.Len(t, r.Body, 64<<10)
	require.NotEmpty(t, r.Reason)
	e, err := dead[0].Entry(nil)
	if err != nil { // it stays in its stream
		for _, d := range v.ReadStream(t, wire.DeadJobs) {
			if gjson.GetBytes(d.Body, "jid").String() == "large" {
				e, err = dead[0].Entry(d.Body)
			}
		}
	}
	require.NoError(t, err)
	require.Contains(t, e.ErrorMessage, "too many to keep")
	require.Zero(t, v.QueueLength(t, wire.DeadLetters))
	unharmed(t, v, s, work(t, v, "fine", nil), "other")
}

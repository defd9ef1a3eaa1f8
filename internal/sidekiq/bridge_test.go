package sidekiq

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// world has a Redis, and a broker with the streams and the queues mails and legacy.
type world struct {
	vhost *brokertest.Vhost
	redis string // its address
	store *store
	log   *syncBuffer
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{vhost: brokertest.New(t), redis: startRedis(t), log: &syncBuffer{}}
	w.store = &store{connect(t, w.redis), "test"}
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Heartbeats, wire.JobMetrics, wire.JobBegins} {
		w.vhost.DeclareStream(t, stream)
	}
	ch := w.vhost.Channel(t)
	require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDirect, "direct", true, false, false, false, nil))
	require.NoError(t, ch.ExchangeDeclare(wire.Control, "fanout", true, false, false, false, nil))
	for _, name := range []string{"mails", "legacy"} {
		_, err := ch.QueueDeclare(wire.QueuePrefix+name, true, false, false, false, map[string]any{"x-max-priority": int32(10)})
		require.NoError(t, err)
		require.NoError(t, ch.QueueBind(wire.QueuePrefix+name, name, wire.ExchangeDirect, false, nil))
	}
	return w
}

// bridge runs a bridge until the test ends, or stop is called.
func (w *world) bridge(t *testing.T, rules Rules, change ...func(*Config)) (stop func()) {
	t.Helper()
	require.NoError(t, rules.Check())
	cfg := Config{RedisURL: "redis://" + w.redis, Rules: rules, Broker: broker.Config{AMQPURL: w.vhost.AMQPURL()}, Log: slog.New(slog.NewTextHandler(w.log, nil))}
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b, err := New(cfg)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, b.Close())
	})
	t.Cleanup(stop)
	return stop
}

// user returns the URL of a user with the permissions that the docs give the bridge.
func (w *world) user(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/permissions.md")
	require.NoError(t, err)
	patterns := regexp.MustCompile(`(?s)set_permissions --vhost jobs bridge \\\s+'([^']+)' '([^']+)' '([^']+)'`).FindSubmatch(text)
	require.NotNil(t, patterns)
	return w.vhost.AddUser(t, "bridge", brokertest.Permissions{Configure: string(patterns[1]), Write: string(patterns[2]), Read: string(patterns[3])}).AMQPURL()
}

// pushed gives Sidekiq jobs, as its client does.
func (w *world) pushed(t *testing.T, queue string, jobs ...string) {
	t.Helper()
	for _, job := range jobs {
		require.NoError(t, w.store.pushing(queue, []byte(job)).try(t.Context()))
	}
}

func (w *world) stream(t *testing.T, name string) (bodies []string) {
	for _, d := range w.vhost.ReadStream(t, name) {
		bodies = append(bodies, string(d.Body))
	}
	return bodies
}

// left returns all jobs that are in Redis, but for what only Sidekiq's workers take.
func (w *world) left(t *testing.T) (jobs []string) {
	t.Helper()
	for _, from := range append([]source{listOf("mails")}, sets...) {
		items, err := w.store.peek(t.Context(), from, 0, 1000)
		require.NoError(t, err)
		jobs = append(jobs, jobsOf(items)...)
		items, err = w.store.waiting(t.Context(), from, 1000)
		require.NoError(t, err)
		jobs = append(jobs, jobsOf(items)...)
	}
	return jobs
}

func job(jid string, more ...string) string {
	return `{"class":"C","args":[],"queue":"mails","jid":"` + jid + `"` + strings.Join(more, "") + `}`
}

func TestJobsComeIn(t *testing.T) {
	w := newWorld(t)
	w.pushed(t, "mails", job("1"), job("2"), job("batch", `,"bid":"b"`), job("3"))
	for _, set := range sets {
		w.store.redis.must(t, "ZADD", set.key, 4102444800.25, job(set.key, `,"retry_count":0`))
	}
	w.store.redis.must(t, "LPUSH", listOf("mails").private(), job("of a bridge that was killed"))
	w.bridge(t, Rules{}, func(c *Config) { c.Broker.AMQPURL = w.user(t) })
	brokertest.Eventually(t, func() bool { return w.vhost.QueueLength(t, "queue.mails") == 4 }, "the jobs of the queue are on the broker")
	var jids []string
	for range 4 {
		d, ok := w.vhost.Get(t, "queue.mails")
		require.True(t, ok)
		jids = append(jids, gjson.GetBytes(d.Body, "jid").Str)
		require.Equal(t, jids[len(jids)-1], d.MessageId)
	}
	require.Equal(t, []string{"of a bridge that was killed", "1", "2", "3"}, jids, "in their order")
	brokertest.Eventually(t, func() bool { return len(w.left(t)) == 1 }, "nothing else is left")
	require.Equal(t, []string{job("batch", `,"bid":"b"`)}, w.left(t))
	require.Contains(t, w.stream(t, wire.ScheduledJobs)[0], `"scheduled_at":4102444800.25`)
	require.Contains(t, w.stream(t, wire.Retries)[0], `"retry_at":4102444800.25,"retry_count":1`)
	require.Contains(t, w.stream(t, wire.DeadJobs)[0], `"died_at":4102444800.25`)
	brokertest.Eventually(t, func() bool { return strings.Contains(w.log.String(), `reason="belongs to a batch" jobs=1`) }, "the log says what stays")
}

// Jobs that stay do not hide those behind them.
func TestJobsBehindThoseThatStay(t *testing.T) {
	w := newWorld(t)
	const stay = 12_000
	jobs := make([]any, stay)
	for n := range jobs {
		jobs[n] = job(strconv.Itoa(n), `,"bid":"b"`)
	}
	w.store.redis.must(t, "LPUSH", append([]any{"queue:mails"}, jobs...)...)
	w.pushed(t, "mails", job("behind them"))
	w.bridge(t, Rules{})
	brokertest.Eventually(t, func() bool { return w.vhost.QueueLength(t, "queue.mails") == 1 }, "the job behind them is on the broker")
	require.EqualValues(t, stay, w.store.redis.must(t, "LLEN", "queue:mails"))
	brokertest.Eventually(t, func() bool { return strings.Contains(w.log.String(), "jobs stay in Redis") }, "it is said at the end of the pass")
	require.Equal(t, 1, strings.Count(w.log.String(), "jobs stay in Redis"), "it is said once, and then once a minute")
}

// What a bridge has taken, and is not to take any more, goes back.
func TestRulesChange(t *testing.T) {
	w := newWorld(t)
	for _, from := range []source{listOf("legacy"), listOf("others"), {retries, "retry"}} {
		i := item{job: `{"class":"C","args":[],"queue":"others","jid":"` + from.key + `"}`}
		if from.place != list {
			i.score = "4102444800.25"
		}
		w.store.redis.must(t, "LPUSH", from.private(), i.saved())
		w.store.redis.must(t, "SADD", sourcesKey, from.key)
	}
	w.bridge(t, Rules{Queues: []string{"mails"}, ToSidekiq: []string{"legacy"}})
	for _, queue := range []string{"legacy", "others"} {
		brokertest.Eventually(t, func() bool { return w.store.redis.must(t, "LLEN", "queue:"+queue) == int64(1) }, "the job of %s is back", queue)
	}
	brokertest.Eventually(t, func() bool { return w.store.redis.must(t, "ZCARD", "retry") == int64(1) }, "the retry is back")
	require.Equal(t, []byte("4102444800.25"), w.store.redis.must(t, "ZRANGE", "retry", 0, 0, "WITHSCORES").([]any)[1])
	require.Zero(t, w.vhost.QueueLength(t, "queue.legacy"))
}

// A queue that does not exist holds up only its own jobs.
func TestQueueThatDoesNotExist(t *testing.T) {
	w := newWorld(t)
	w.pushed(t, "a-missing-one", `{"class":"C","args":[],"queue":"a-missing-one","jid":"1"}`)
	w.pushed(t, "mails", job("2"))
	w.bridge(t, Rules{})
	brokertest.Eventually(t, func() bool { return w.vhost.QueueLength(t, "queue.mails") == 1 }, "the other queue has its job")
	brokertest.Eventually(t, func() bool { return strings.Contains(w.log.String(), `there is no queue for \"a-missing-one\"`) }, "the log says what is missing")
	ch := w.vhost.Channel(t)
	_, err := ch.QueueDeclare("queue.a-missing-one", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("queue.a-missing-one", "a-missing-one", wire.ExchangeDirect, false, nil))
	brokertest.Eventually(t, func() bool { return w.vhost.QueueLength(t, "queue.a-missing-one") == 1 }, "its job comes as soon as it exists")
}

func TestJobsGoOutToSidekiq(t *testing.T) {
	w := newWorld(t)
	w.bridge(t, Rules{ToSidekiq: []string{"legacy"}}, func(c *Config) { c.Broker.AMQPURL = w.user(t) })
	body := []byte(`{"class":"C","args":[1],"queue":"legacy","jid":"1","retry_count":2}`)
	w.vhost.Publish(t, wire.ExchangeDirect, "legacy", amqpJob(body), amqpJob([]byte(`{"class":"C","args":{"a":1},"queue":"legacy","jid":"2"}`)))
	brokertest.Eventually(t, func() bool { return w.store.redis.must(t, "LLEN", "queue:legacy") == int64(1) }, "Sidekiq has the job")
	pushed := string(w.store.redis.must(t, "RPOP", "queue:legacy").([]byte))
	require.Equal(t, "1", gjson.Get(pushed, "jid").Str)
	require.EqualValues(t, 1, gjson.Get(pushed, "retry_count").Int())
	require.EqualValues(t, 1, w.store.redis.must(t, "SISMEMBER", "queues", "legacy"), "Sidekiq's web UI knows the queue")
	brokertest.Eventually(t, func() bool { return len(w.stream(t, wire.DeadJobs)) == 1 }, "what Sidekiq cannot run is dead")
	require.Contains(t, w.stream(t, wire.DeadJobs)[0], "its args are no array")

	// What failed in Sidekiq is retried by Millrace.
	e := edit{raw: []byte(pushed)}
	e.set("retry_count", "2")
	require.NoError(t, e.err)
	w.store.redis.must(t, "ZADD", "retry", 4102444800, string(e.raw))
	brokertest.Eventually(t, func() bool { return len(w.stream(t, wire.Retries)) == 1 }, "the retry came in")
	require.Contains(t, w.stream(t, wire.Retries)[0], `"retry_count":3`)
	require.Zero(t, w.store.redis.must(t, "LLEN", "queue:legacy"))
}

// A second bridge waits, and takes over when the first one ends.
func TestOneBridgeAtATime(t *testing.T) {
	w := newWorld(t)
	stop := w.bridge(t, Rules{})
	brokertest.Eventually(t, func() bool { return strings.Contains(w.log.String(), "moving jobs") }, "the first one moves jobs")
	w.bridge(t, Rules{})
	brokertest.Eventually(t, func() bool { return strings.Contains(w.log.String(), "another bridge moves jobs") }, "the second one waits")
	stop()
	w.pushed(t, "mails", job("1"))
	brokertest.Eventually(t, func() bool { return w.vhost.QueueLength(t, "queue.mails") == 1 }, "the second one moves jobs")
}

// While the broker or Redis is away, jobs wait where they are. None is lost.
func TestConnectionsBreak(t *testing.T) {
	w := newWorld(t)
	back := brokertest.NewProxy(t, w.vhost.AMQPURL())
	front := brokertest.NewProxy(t, "redis://"+w.redis)
	w.bridge(t, Rules{}, func(c *Config) {
		c.Broker.AMQPURL = back.URL()
		c.RedisURL = front.URL()
	})
	const jobs = 2000
	w.pushed(t, "mails", job("first"))
	brokertest.Eventually(t, func() bool { return w.vhost.QueueLength(t, "queue.mails") == 1 }, "it moves jobs: from now on, a lost connection does not end it")
	go func() {
		for n := range jobs - 1 {
			w.pushed(t, "mails", job(string(rune('a'+n%26))+time.Now().Format("150405.000000000")))
		}
	}()
	for range 5 {
		for _, p := range []*brokertest.Proxy{back, front} {
			p.Cut(t)
			p.Heal(t)
			p.Freeze(t)
			time.Sleep(50 * time.Millisecond)
			p.Heal(t)
		}
	}
	brokertest.EventuallyWithin(t, 2*time.Minute, func() bool { return len(w.left(t)) == 0 && w.vhost.QueueLength(t, "queue.mails") >= jobs }, "all jobs came")
	seen := map[string]bool{}
	for range w.vhost.QueueLength(t, "queue.mails") {
		d, ok := w.vhost.Get(t, "queue.mails")
		require.True(t, ok)
		seen[string(d.Body)] = true
	}
	require.Len(t, seen, jobs)
}

func TestSurvey(t *testing.T) {
	w := newWorld(t)
	w.pushed(t, "mails", job("1"), job("2"), job("3", `,"bid":"b"`))
	w.pushed(t, "legacy", `{"class":"R","args":[],"queue":"legacy","jid":"4"}`)
	w.store.redis.must(t, "ZADD", "schedule", 4102444800, `{"class":"R","args":[],"queue":"mails","jid":"5"}`)
	b, err := New(Config{RedisURL: "redis://" + w.redis, Rules: Rules{ToSidekiq: []string{"legacy"}, Keep: []KeepRule{{"R", "legacy"}}}})
	require.NoError(t, err)
	groups, err := b.Survey(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.Equal(t, []Group{
		{Place: "queue", Queue: "legacy", Class: "R", Stays: "Sidekiq's workers run it", Jobs: 1},
		{Place: "queue", Queue: "mails", Class: "C", To: "mails", Jobs: 2},
		{Place: "queue", Queue: "mails", Class: "C", Stays: "belongs to a batch", Jobs: 1},
		{Place: "schedule", Queue: "mails", Class: "R", To: "legacy", Jobs: 1},
	}, groups)
	require.Len(t, w.left(t), 4, "nothing was moved")
}

func amqpJob(body []byte) amqp.Publishing {
	return amqp.Publishing{Body: body, DeliveryMode: amqp.Persistent}
}

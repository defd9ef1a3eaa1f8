package millrace

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// vectors calls each with every case of a file.
func vectors(t *testing.T, file string, each func(*testing.T, gjson.Result)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "conformance", "vectors", file))
	require.NoError(t, err)
	cases := gjson.ParseBytes(text).Array()
	require.NotEmpty(t, cases)
	for _, c := range cases {
		t.Run(c.Get("name").String(), func(t *testing.T) { each(t, c) })
	}
}

func body(t *testing.T, c gjson.Result) []byte {
	t.Helper()
	if coded := c.Get("body_base64"); coded.Exists() {
		text, err := base64.StdEncoding.DecodeString(coded.String())
		require.NoError(t, err)
		return text
	}
	return []byte(c.Get("body").String())
}

func TestVectorsBackoff(t *testing.T) {
	vectors(t, "backoff.json", func(t *testing.T, c gjson.Result) {
		n := int(c.Get("retry_count").Int())
		seconds := func(random func(int) int) float64 { return wire.Backoff(n, random).Seconds() }
		require.Equal(t, c.Get("min").Float(), seconds(func(int) int { return 0 }))
		require.Equal(t, c.Get("max").Float(), seconds(func(n int) int { return n - 1 }))
	})
}

func TestVectorsSplice(t *testing.T) {
	vectors(t, "splice.json", func(t *testing.T, c gjson.Result) {
		job, err := parseJob(&amqp.Delivery{Body: body(t, c)}, c.Get("queue").String())
		require.NoError(t, err)
		record := retryRecord(job, errors.New("x"), time.Now(), time.Now())
		require.True(t, json.Valid(record), "%s", record)
		withoutJob(t, record, c.Get("job").String())
	})
}

// withoutJob returns the rest of a record whose job must be exactly these bytes.
func withoutJob(t *testing.T, record []byte, job string) string {
	t.Helper()
	rest, found := strings.CutSuffix(string(record), `,"job":`+job+"}")
	require.True(t, found, "%s has not the job %s", record, job)
	return rest + "}"
}

func TestVectorsUndecodable(t *testing.T) {
	vectors(t, "undecodable.json", func(t *testing.T, c gjson.Result) {
		job, err := parseJob(&amqp.Delivery{Body: body(t, c), MessageId: "none"}, "default")
		if !c.Get("decodable").Bool() {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		if jid := c.Get("jid").String(); jid != "" {
			require.Equal(t, jid, job.JID)
		}
		require.Equal(t, c.Get("class").String(), job.Class)
		require.EqualValues(t, c.Get("retry").Int()+1, job.MaxAttempts)
		require.EqualValues(t, c.Get("retry_count").Int(), job.RetryCount)
	})
}

func TestVectorsPoison(t *testing.T) {
	vectors(t, "poison.json", func(t *testing.T, c gjson.Result) {
		b := newBegins()
		c.Get("stream").ForEach(func(_, r gjson.Result) bool {
			b.apply([]byte(r.Raw))
			return true
		})
		gone := map[string]bool{}
		for _, q := range c.Get("gone").Array() {
			gone[q.String()] = true
		}
		k := key{c.Get("key.jid").String(), c.Get("key.body").String()}
		self, queue := c.Get("self").String(), c.Get("queue").String()
		blames := b.blame(k, queue, self, clock(c.Get("enqueued_at").Float()), gone)
		require.Equal(t, c.Get("blames").String(), blames)
		b.begun(begin{Process: self, JID: k.jid, Body: k.body, Blames: &blames}, time.Now())
		require.EqualValues(t, c.Get("deaths").Int(), b.deaths(k, self, gone))
	})
}

func TestVectorsOutcomes(t *testing.T) {
	vectors(t, "outcomes.json", func(t *testing.T, c gjson.Result) {
		d := amqp.Delivery{Body: []byte(c.Get("delivery.body").String()), MessageId: c.Get("delivery.message_id").String(), Headers: amqp.Table{}}
		c.Get("delivery.headers").ForEach(func(name, value gjson.Result) bool {
			d.Headers[name.String()] = value.String()
			return true
		})
		job, err := parseJob(&d, c.Get("delivery.queue").String())
		if c.Get("outcome.kind").String() == "undecodable" {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		now := clock(c.Get("now").Float())
		o := vectorOutcome(t, job, c.Get("outcome"), now)
		checkRecord(t, c, o)
		then := map[bool]string{true: "requeue"}[o.requeue]
		if o.reject {
			then = "reject"
		} else if !o.requeue {
			then = "ack"
		}
		require.Equal(t, c.Get("then").String(), then)
		checkMetric(t, c.Get("metric"), job, o, now)
		if o.stream != "" {
			p := publishing(job.JID, job.Class, job.Priority, job.Traceparent(), now, o.record)
			require.Len(t, p.Headers, len(c.Get("headers").Map()))
			require.Equal(t, c.Get("headers.traceparent").String(), job.Traceparent())
		}
	})
}

func vectorOutcome(t *testing.T, job *RawJob, kind gjson.Result, now time.Time) outcome {
	t.Helper()
	at := circumstances{now: now, stopping: kind.Get("stopping").Bool()}
	failure := vectorError{kind.Get("error_class").String(), kind.Get("error_message").String(), kind.Get("backtrace").Array()}
	after := time.Duration(kind.Get("seconds").Float() * float64(time.Second))
	switch kind.Get("kind").String() {
	case "success":
		return judge(job, nil, at)
	case "fail":
		return judge(job, failure, at)
	case "retry_in":
		return judge(job, RetryIn(after, failure), at)
	case "discard":
		return judge(job, Discard("why not"), at)
	case "kill":
		return judge(job, Kill(kind.Get("message").String()), at)
	case "hand_back":
		return judge(job, ErrHandBack, at)
	case "unknown_class":
		return judge(job, unknownClassError{job.Class}, at)
	case "timeout":
		return judge(job, timeoutError{after}, at)
	case "expired":
		require.True(t, job.expiresAt.Before(now))
		return expire(job, now)
	case "poison":
		return poisoned(job, int(kind.Get("deaths").Int()), now)
	}
	require.FailNow(t, "unknown outcome", kind.Raw)
	return outcome{}
}

type vectorError struct {
	class, text string
	lines       []gjson.Result
}

func (e vectorError) Error() string      { return e.text }
func (e vectorError) ErrorClass() string { return e.class }
func (e vectorError) Backtrace() (lines []string) {
	for _, line := range e.lines {
		lines = append(lines, line.String())
	}
	return lines
}

func checkRecord(t *testing.T, c gjson.Result, o outcome) {
	t.Helper()
	require.Equal(t, c.Get("stream").String(), o.stream)
	if o.stream == "" {
		require.Empty(t, o.record)
		return
	}
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(withoutJob(t, o.record, c.Get("job").String())), &got))
	for name, want := range c.Get("record").Map() {
		if want.IsObject() {
			require.GreaterOrEqual(t, got[name], want.Get("min").Float(), name)
			require.LessOrEqual(t, got[name], want.Get("max").Float(), name)
		} else {
			require.Equal(t, want.Value(), got[name], name)
		}
		delete(got, name)
	}
	require.Empty(t, got)
}

func checkMetric(t *testing.T, want gjson.Result, job *RawJob, o outcome, now time.Time) {
	t.Helper()
	m := newMetrics("me")
	task := &task{w: &Worker{metrics: m}}
	task.measured(job, now, now, o)
	if want.Type == gjson.Null {
		require.Empty(t, m.records)
		return
	}
	require.Len(t, m.records, 1)
	text, err := json.Marshal(<-m.records)
	require.NoError(t, err)
	for name, value := range want.Map() {
		require.Equal(t, value.Value(), gjson.GetBytes(text, name).Value(), name)
	}
	require.Equal(t, want.Get("error_class").Exists(), gjson.GetBytes(text, "error_class").Exists())
}

func TestVectorsPublish(t *testing.T) {
	vectors(t, "publish.json", func(t *testing.T, c gjson.Result) {
		if !c.Get("args").IsArray() || c.Get("options.queue").String() == "" && c.Get("options.queue").Exists() || c.Get("options.retry").IsBool() {
			// Go's types cannot express these: args that are no array, an empty queue, a flag for a
			// number.
			return
		}
		checkPublish(t, c)
	})
}

func TestVectorsUnique(t *testing.T) {
	vectors(t, "unique.json", func(t *testing.T, c gjson.Result) {
		switch c.Get("name").String() {
		case "a key that is empty", "for is 0", "a part that is no text", "parts that are no list", "a member that unique does not have", "unique is a text":
			return // Go's types cannot express these
		}
		checkPublish(t, c)
	})
}

func TestVectorsQueues(t *testing.T) {
	vectors(t, "queues.json", func(t *testing.T, c gjson.Result) {
		given := c.Get("queue")
		q := GovernedQueue{Name: text(given.Get("name")), Key: text(given.Get("key")), MaxWaiting: int(given.Get("max_waiting").Int()),
			Ahead: int(given.Get("ahead").Int()), Paused: given.Get("paused").Bool(), Weights: map[string]int{}}
		for key, weight := range given.Get("weights").Map() {
			q.Weights[key] = int(weight.Int())
		}
		definition, err := q.Definition()
		if c.Get("error").Exists() {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.NoError(t, err)
		require.JSONEq(t, given.Raw, string(definition))
	})
}

func vectorUnique(u gjson.Result) *Unique {
	if u.Type == gjson.Null || u.Type == gjson.False {
		return nil
	}
	unique := Unique{Key: text(u.Get("key")), While: While(u.Get("while").String()), On: OnDuplicate(u.Get("on").String()),
		For: span(u.Get("for")), Wait: span(u.Get("wait")), Max: span(u.Get("max"))}
	if by := u.Get("by"); by.Exists() {
		unique.By = texts(by)
	}
	return &unique
}

func span(v gjson.Result) time.Duration { return time.Duration(v.Num * float64(time.Second)) }

func checkPublish(t *testing.T, c gjson.Result) {
	t.Helper()
	var args []any
	for _, arg := range c.Get("args").Array() {
		args = append(args, raw(arg))
	}
	job := EnqueueParams{Args: Args(raw(c.Get("class")).(string), args...), Options: vectorOptions(c)}
	r, err := job.prepare(clock(c.Get("now").Float()))
	if c.Get("error").Exists() {
		require.ErrorIs(t, err, ErrInvalid)
		return
	}
	require.NoError(t, err)
	require.Equal(t, c.Get("exchange").String(), r.exchange)
	require.Equal(t, c.Get("routing_key").String(), r.key)
	require.JSONEq(t, c.Get("body").Raw, string(r.Body))
	want := c.Get("properties")
	require.Equal(t, want.Get("type").String(), r.Type)
	require.Equal(t, want.Get("message_id").String(), r.MessageId)
	require.Equal(t, want.Get("content_type").String(), r.ContentType)
	require.EqualValues(t, want.Get("delivery_mode").Int(), r.DeliveryMode)
	require.EqualValues(t, want.Get("priority").Int(), r.Priority)
	require.Len(t, r.Headers, len(want.Get("headers").Map()))
}

func TestVectorsMessages(t *testing.T) {
	vectors(t, "messages.json", func(t *testing.T, c gjson.Result) {
		p := c.Get("message.properties")
		number := func(name string, least, most float64) bool {
			n := p.Get(name)
			return n.Type == gjson.Null || n.Num >= least && n.Num <= most
		}
		if p.Get("colour").Exists() || p.Get("user_id").Exists() || p.Get("type").Type == gjson.Number || !number("priority", 0, 255) {
			// Go's types cannot express these: a property that does not exist, a number for a text,
			// a priority that is no byte.
			return
		}
		message := vectorMessage(t, c)
		r, err := EnqueueParams{Args: message, Options: vectorOptions(c)}.withDefaults().prepare(clock(c.Get("now").Float()))
		if c.Get("error").Exists() {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.NoError(t, err)
		require.Empty(t, r.exchange)
		require.Equal(t, wire.ScheduledJobs, r.key)
		require.JSONEq(t, c.Get("record").Raw, string(r.Body))

		var decoded Message
		require.NoError(t, json.Unmarshal([]byte(gjson.GetBytes(r.Body, "job.args.0").Raw), &decoded))
		require.True(t, message.Properties.Timestamp.Equal(decoded.Properties.Timestamp))
		decoded.Properties.Timestamp = message.Properties.Timestamp
		require.Equal(t, message, decoded)
	})
}

func vectorMessage(t *testing.T, c gjson.Result) Message {
	t.Helper()
	given := c.Get("message")
	m := Message{Exchange: raw(given.Get("exchange")).(string), RoutingKey: given.Get("routing_key").String(), Body: body(t, given)}
	p := given.Get("properties")
	if p.Exists() {
		require.NoError(t, decode([]byte(p.Raw), &m.Properties))
	}
	if id := p.Get("app_id"); id.Exists() {
		m.Properties.AppID = raw(id).(string)
	}
	if at := p.Get("timestamp"); at.Exists() {
		m.Properties.Timestamp = time.Unix(at.Int(), 0)
	}
	if strings.Contains(p.Get("headers").Raw, `\ud800`) {
		m.Properties.Headers = map[string]any{"a": []any{"\xed\xa0\x80"}}
	}
	return m
}

// raw returns a value. Half a character in an escape becomes bytes that are not UTF-8.
func raw(v gjson.Result) any {
	if v.Type == gjson.String && strings.Contains(v.Raw, `\ud800`) {
		return "\xed\xa0\x80"
	}
	return v.Value()
}

// text returns a string, or "" if there is none.
func text(v gjson.Result) string {
	s, _ := raw(v).(string)
	return s
}

func vectorOptions(c gjson.Result) EnqueueOptions {
	o := c.Get("options")
	job := EnqueueOptions{
		Queue: o.Get("queue").String(), Priority: int(o.Get("priority").Int()), JID: c.Get("jid").String(), Timeout: seconds(o.Get("timeout")),
		NoDead: o.Get("dead").Raw == "false", Backtrace: int(o.Get("backtrace").Int()), Traceparent: o.Get("traceparent").String(),
		Limited: o.Get("limited").Bool(), LimitKey: text(o.Get("limit_key")), Unique: vectorUnique(o.Get("unique")),
	}
	if o.Get("jid").Exists() {
		job.JID = o.Get("jid").String()
	}
	if at := c.Get("at"); at.Exists() {
		job.ScheduledAt = clock(at.Float())
	}
	if o.Get("expires_at").Exists() {
		job.ExpiresAt = clock(o.Get("expires_at").Float())
	}
	for _, tag := range o.Get("tags").Array() {
		job.Tags = append(job.Tags, tag.String())
	}
	job.Fields, _ = o.Get("fields").Value().(map[string]any)
	switch r := o.Get("retry"); {
	case r.Int() < 0:
		job.MaxAttempts = int(r.Int())
	case r.Exists():
		job.MaxAttempts = int(r.Int()) + 1
	}
	return job
}

func TestVectorsHosts(t *testing.T) {
	vectors(t, "hosts.json", func(t *testing.T, c gjson.Result) {
		hosts, err := newHosts(texts(c.Get("urls")), login{})
		if text := c.Get("error").String(); text != "" {
			require.EqualError(t, err, "millrace: "+text)
			return
		}
		require.NoError(t, err)
		require.Equal(t, texts(c.Get("hosts")), hosts.urls)
	})
}

func TestVectorsHostOrder(t *testing.T) {
	vectors(t, "host_order.json", func(t *testing.T, c gjson.Result) {
		firsts := map[string]bool{}
		for range 200 {
			order := tryOrder(texts(c.Get("hosts")), c.Get("good").String(), c.Get("lost").Bool())
			rest := order
			for _, group := range c.Get("order").Array() {
				n := len(group.Array())
				require.ElementsMatch(t, texts(group), rest[:n])
				rest = rest[n:]
			}
			require.Empty(t, rest)
			if len(order) > 0 {
				firsts[order[0]] = true
			}
		}
		require.Len(t, firsts, len(c.Get("order.0").Array()), "each of the first group comes first at times")
	})
}

func texts(list gjson.Result) []string {
	all := []string{}
	for _, text := range list.Array() {
		all = append(all, text.String())
	}
	return all
}

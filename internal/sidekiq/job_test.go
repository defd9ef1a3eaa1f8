package sidekiq

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// packed returns a backtrace as Sidekiq keeps it.
func packed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// sourceAt returns the source of a place: for a list, that of the queue mails.
func sourceAt(p place) source {
	if p == list {
		return listOf("mails")
	}
	return sets[p-1]
}

// What Sidekiq 8.1 and 7 write comes in, with all bytes that need no change.
func TestJobsComeInByteForByte(t *testing.T) {
	failed := fmt.Sprintf(`"retry_count":1,"failed_at":1795158930250,"retried_at":1795158990500,"error_class":"Timeout","error_message":"late ✓","error_backtrace":"%s"`,
		packed(t, `["app.rb:1","app.rb:2"]`))
	const plain = `{"retry": 3, "queue":"mails","class":"SendEmail","args":[9007199254740993, 1.0, "é"],"jid":"b4a577edbccf1d805744efa5","created_at":1795158930250,"cattr":{"x":1.10}}`
	for name, c := range map[string]struct {
		from  place
		job   string
		score float64
		key   string
		body  string
	}{
		"queue": {list, plain, 0, "mails", plain},
		"queue, after a failure": {list, `{"queue":"mails","class":"C","args":[],"jid":"1","retry_count":0,"n":1e2}`, 0, "mails",
			`{"queue":"mails","class":"C","args":[],"jid":"1","retry_count":1,"n":1e2}`},
		"schedule": {schedule, plain, 4102444800.25, "scheduled_jobs",
			`{"type":"scheduled_job","jid":"b4a577edbccf1d805744efa5","scheduled_at":4102444800.25,"job":` + plain + `}`},
		"retry": {retries, `{"queue":"mails","class":"C","args":[],"jid":"1",` + failed + `}`, 4102444800.5, "retries",
			`{"type":"retry","jid":"1","retry_at":4102444800.5,"retry_count":2,"failed_at":1795158990.5,"error_class":"Timeout","error_message":"late ✓","backtrace":"app.rb:1\napp.rb:2",` +
				`"job":{"queue":"mails","class":"C","args":[],"jid":"1","retry_count":2,"failed_at":1795158930250,"retried_at":1795158990500,"error_class":"Timeout","error_message":"late ✓"}}`},
		"retry of Sidekiq 7": {retries, `{"queue":"mails","class":"C","args":[],"jid":"1","retry_count":0,"failed_at":1795158930.25,"error_class":"E","error_message":"m"}`, 4102444800, "retries",
			`{"type":"retry","jid":"1","retry_at":4102444800,"retry_count":1,"failed_at":1795158930.25,"error_class":"E","error_message":"m",` +
				`"job":{"queue":"mails","class":"C","args":[],"jid":"1","retry_count":1,"failed_at":1795158930.25,"error_class":"E","error_message":"m"}}`},
		"dead": {dead, `{"queue":"mails","class":"C","args":[],"jid":"1",` + failed + `}`, 1795159000.75, "dead_jobs",
			`{"type":"dead_job","jid":"1","died_at":1795159000.75,"retry_count":1,"error_class":"Timeout","error_message":"late ✓","backtrace":"app.rb:1\napp.rb:2","reason":"exhausted",` +
				`"job":{"queue":"mails","class":"C","args":[],"jid":"1","retry_count":2,"failed_at":1795158930250,"retried_at":1795158990500,"error_class":"Timeout","error_message":"late ✓"}}`},
		"Active Job": {list, `{"class":"Sidekiq::ActiveJob::Wrapper","wrapped":"Welcome","queue":"mails","args":[{"job_class":"Welcome","arguments":["Ann"]}],"jid":"1"}`, 0, "mails",
			`{"class":"Welcome","queue":"mails","args":[{"job_class":"Welcome","arguments":["Ann"]}],"jid":"1"}`},
		"Active Job of Rails": {list, `{"class":"ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper","wrapped":"Welcome","queue":"mails","args":[{"job_class":"Welcome"}],"jid":"1"}`, 0, "mails",
			`{"class":"Welcome","queue":"mails","args":[{"job_class":"Welcome"}],"jid":"1"}`},
		"Active Job that came back": {list, `{"class":"ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper","wrapped":"Welcome","queue":"mails","args":[{"job_class":"Welcome"}],"jid":"1"}`, 0, "mails",
			`{"class":"Welcome","queue":"mails","args":[{"job_class":"Welcome"}],"jid":"1"}`},
		"another queue than its list's": {list, `{"class":"C","queue":"others","args":[],"jid":"1"}`, 0, "mails", `{"class":"C","queue":"mails","args":[],"jid":"1"}`},
		"no queue in a list":            {list, `{"class":"C","args":[],"jid":"1"}`, 0, "mails", `{"class":"C","args":[],"jid":"1","queue":"mails"}`},
		"no queue in a set": {schedule, `{"class":"C","args":[],"jid":"1"}`, 4102444800, "scheduled_jobs",
			`{"type":"scheduled_job","jid":"1","scheduled_at":4102444800,"job":{"class":"C","args":[],"jid":"1","queue":"default"}}`},
		"no retries": {list, `{"class":"C","queue":"mails","args":[],"jid":"1","retry":false}`, 0, "mails", `{"class":"C","queue":"mails","args":[],"jid":"1","retry":false,"dead":false}`},
		"retry that has not failed": {retries, `{"class":"C","queue":"mails","args":[],"jid":"1"}`, 4102444800, "scheduled_jobs",
			`{"type":"scheduled_job","jid":"1","scheduled_at":4102444800,"job":{"class":"C","queue":"mails","args":[],"jid":"1"}}`},
		"kept class": {list, `{"class":"ReportJob","queue":"mails","args":[],"jid":"1"}`, 0, "legacy", `{"class":"ReportJob","queue":"legacy","args":[],"jid":"1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			rules := Rules{ToSidekiq: []string{"legacy"}, Keep: []KeepRule{{"Report*", "legacy"}}}
			m, err := rules.fromSidekiq(sourceAt(c.from), []byte(c.job), c.score)
			require.NoError(t, err)
			require.Equal(t, c.key, m.Key)
			require.Equal(t, c.body, string(m.Body))
			require.Equal(t, c.from == list, m.Exchange == wire.ExchangeDirect)
			require.Equal(t, gjson.Get(c.job, "jid").Str, m.MessageID)
		})
	}
}

// What Millrace cannot do, or does not know, stays where it is.
func TestJobsThatStay(t *testing.T) {
	rules := Rules{Queues: []string{"mails"}, ToSidekiq: []string{"legacy"}}
	for job, why := range map[string]reason{
		`not JSON`: noJob, `[]`: noJob, `{"class":"C","jid":"1","queue":"mails"}`: noJob, `{"class":"C","jid":"1","queue":"mails","args":{}}`: noJob,
		`{"args":[],"jid":"1","queue":"mails"}`: noJob, `{"class":"C","args":[],"queue":"mails"}`: noJob,
		`{"class":"C","args":[],"jid":"1","queue":"mails","retry":-1}`: noJob, "{\"class\":\"C\",\"args\":[\"\xff\"],\"jid\":\"1\",\"queue\":\"mails\"}": noJob,
		`{"class":"C","args":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `,"jid":"1","queue":"mails"}`: noJob,
		`{"class":"C","args":[],"jid":"1","queue":"mails","bid":"b","unique_for":1}`:                                       batch,
		`{"class":"C","args":[],"jid":"1","queue":"mails","encrypt":true}`:                                                 encrypted,
		`{"class":"C","args":[],"jid":"1","queue":"mails","unique_for":600}`:                                               unique,
		`{"class":"C","args":[],"jid":"1","queue":"mails","lock_digest":"uniquejobs"}`:                                     unique,
	} {
		for _, from := range append([]source{listOf("mails")}, sets...) {
			_, err := rules.fromSidekiq(from, []byte(job), 1)
			require.Equal(t, why, err, "%.100s in %s", job, from.place)
		}
	}
	for _, job := range []string{`{"class":"C","args":[],"jid":"1","queue":"others"}`, `{"class":"C","args":[],"jid":"1"}`} {
		_, err := rules.fromSidekiq(sets[0], []byte(job), 1)
		require.Equal(t, notTaken, err)
	}
	for _, job := range []string{`{"class":"C","args":[],"jid":"1","queue":"legacy"}`, `{"class":"C","args":[],"jid":"1","queue":"mails","bid":null,"encrypt":false}`} {
		_, err := rules.fromSidekiq(sets[1], []byte(job), 1)
		require.NoError(t, err, "jobs of queues that Sidekiq's workers run are scheduled and retried by Millrace")
	}
	for _, score := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e12} {
		for _, from := range sets {
			_, err := rules.fromSidekiq(from, []byte(`{"class":"C","args":[],"jid":"1","queue":"mails"}`), score)
			require.Equal(t, noTime, err, "%s at %v", from.place, score)
		}
	}
}

func TestJobsGoOut(t *testing.T) {
	now := time.UnixMilli(1795158930250)
	for name, c := range map[string]struct{ job, want string }{
		"plain": {
			`{"jid":"1","class":"C","args":[9007199254740993],"queue":"x","retry_count":0,"enqueued_at":1795158000}`,
			`{"jid":"1","class":"C","args":[9007199254740993],"queue":"legacy","enqueued_at":1795158930.250000,"retry":true}`,
		},
		"after failures": {
			`{"class":"C","args":[],"queue":"legacy","retry":5,"retry_count":3,"created_at":1795158930250,"failed_at":1795158931,"retried_at":1795158932}`,
			`{"class":"C","args":[],"queue":"legacy","retry":5,"retry_count":2,"created_at":1795158930.250000,"failed_at":1795158931.000000,"retried_at":1795158932.000000,"jid":"1","enqueued_at":1795158930.250000}`,
		},
		"Active Job": {
			`{"jid":"1","class":"Welcome","args":[{"job_class":"Welcome"}],"queue":"legacy","retry":false,"dead":false}`,
			`{"jid":"1","class":"ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper","args":[{"job_class":"Welcome"}],"queue":"legacy","retry":false,"dead":false,"wrapped":"Welcome","enqueued_at":1795158930.250000}`,
		},
		"a failure whose time is not in the job, and no retries": {
			`{"jid":"1","class":"C","args":[],"queue":"legacy","retry":false,"retry_count":1,"retry_for":600}`,
			`{"jid":"1","class":"C","args":[],"queue":"legacy","retry":0,"retry_count":0,"retry_for":600,"enqueued_at":1795158930.250000,"failed_at":1795158930.250000}`,
		},
	} {
		got, err := toSidekiq([]byte(c.job), "1", "legacy", now)
		require.NoError(t, err, name)
		require.Equal(t, c.want, string(got), name)
	}
	_, err := toSidekiq([]byte(`{"class":"C","args":{"to":"Ann"}}`), "1", "legacy", now)
	require.ErrorContains(t, err, "args")
}

// A job that goes out, fails in Sidekiq and comes in has failed once more, and has lost nothing.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failures := rapid.IntRange(0, 30).Draw(t, "failures")
		own := rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "own member")
		value := rapid.SampledFrom([]string{`1`, `9007199254740993`, `1.50`, `"é"`, `[1, 2]`, `{"a": null}`}).Draw(t, "value")
		job := fmt.Sprintf(`{"jid":"1","class":"C","args":[%s],"queue":"legacy","retry":25,"retry_count":%d,"own_%s":%s}`, value, failures, own, value)
		away, err := toSidekiq([]byte(job), "1", "legacy", time.Now())
		require.NoError(t, err)
		require.True(t, gjson.ValidBytes(away))

		// What Sidekiq does to a job that fails.
		count := gjson.GetBytes(away, "retry_count")
		require.Equal(t, failures > 0, count.Exists())
		e := edit{raw: away}
		if count.Exists() {
			e.set("retry_count", fmt.Sprint(count.Int()+1))
		} else {
			e.set("retry_count", "0")
		}
		require.NoError(t, e.err)
		m, err := Rules{ToSidekiq: []string{"legacy"}}.fromSidekiq(sourceAt(retries), e.raw, 4102444800)
		require.NoError(t, err)
		entry, err := wire.ParseEntry(wire.Retries, 0, m.Body)
		require.NoError(t, err)
		require.Equal(t, failures+1, entry.Attempt)
		require.Equal(t, "legacy", entry.Job.Queue)
		require.Equal(t, value, gjson.GetBytes(entry.Job.Raw, "own_"+own).Raw)
		require.Equal(t, value, gjson.GetBytes(entry.Job.Raw, "args.0").Raw)
	})
}

func TestRules(t *testing.T) {
	keep, err := ParseKeep("Report*=legacy")
	require.NoError(t, err)
	require.Equal(t, KeepRule{"Report*", "legacy"}, keep)
	for _, text := range []string{"", "Report", "=legacy", "Report=", "[=legacy"} {
		_, err := ParseKeep(text)
		require.ErrorContains(t, err, "CLASS=QUEUE", text)
	}
	for _, c := range []struct {
		rules Rules
		says  string
	}{
		{Rules{}, ""},
		{Rules{Queues: []string{"a"}, ToSidekiq: []string{"b"}, Keep: []KeepRule{{"C", "b"}}}, ""},
		{Rules{Queues: []string{"a"}, ToSidekiq: []string{"a"}}, "both sides"},
		{Rules{Keep: []KeepRule{{"C", "b"}}}, "--to-sidekiq"},
		{Rules{ToSidekiq: []string{"a\n"}}, `queue "a\n"`},
		{Rules{ToSidekiq: []string{"a", "a"}}, "twice"},
	} {
		if err := c.rules.Check(); c.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.says)
		}
	}
}

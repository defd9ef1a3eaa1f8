package sidekiq

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace-jobs/millrace/wire"
)

// wrapper is the class of Sidekiq that runs a job of Active Job. Its member "wrapped" has the
// class of that job, and its only argument is that job. Every version of Sidekiq knows the name
// that Rails gave it; newer ones have newWrapper too.
const (
	wrapper    = "ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper"
	newWrapper = "Sidekiq::ActiveJob::Wrapper"
)

// reason says why a job stays in Redis.
type reason string

const (
	noJob     reason = "no job, or not as the wire format wants it"
	noTime    reason = "its time cannot be right"
	batch     reason = "belongs to a batch"
	encrypted reason = "encrypted"
	unique    reason = "unique"
	notTaken  reason = "its queue is not taken"
	refused   reason = "the broker refuses it"
)

func (r reason) Error() string { return string(r) }

// unsupported are members whose jobs Millrace cannot run: it does not have what they ask for. The
// last two are those of the gem sidekiq-unique-jobs.
var unsupported = []struct {
	member string
	why    reason
}{
	{"bid", batch}, {"encrypt", encrypted}, {"unique_for", unique}, {"unique_token", unique}, {"lock_digest", unique}, {"unique_digest", unique},
}

// fromSidekiq returns the message that enters a job. score is the one in a sorted set. The error
// is a reason if the job must stay in Redis.
func (r Rules) fromSidekiq(from source, job []byte, score float64) (m wire.Message, err error) {
	if err := check(job); err != nil {
		return m, err
	}
	if from.place != list && !(math.Abs(score) <= wire.MillisAbove) {
		return m, noTime
	}
	class, named := gjson.GetBytes(job, "class").Str, gjson.GetBytes(job, "queue").Str
	e := edit{raw: job}
	if wrapped := gjson.GetBytes(job, "wrapped").Str; wrapped != "" && (class == wrapper || class == newWrapper) {
		class = wrapped
		e.set("class", wire.Quote(class))
		e.remove("wrapped")
	}
	queue, ok := r.queueOf(class, from.queueOf(named))
	if !ok {
		return m, notTaken
	}
	if queue != named {
		e.set("queue", wire.Quote(queue))
	}
	if gjson.GetBytes(job, "retry").Type == gjson.False && !has(job, "dead") {
		e.set("dead", "false") // Sidekiq forgets such a job when it fails
	}
	f := failureOf(job)
	if f.failed {
		// Sidekiq counts the retries that there were, Millrace the failures.
		e.set("retry_count", strconv.Itoa(f.RetryCount+1))
	}
	if f.Backtrace != "" {
		e.remove("error_backtrace")
	}
	if e.err != nil {
		return m, noJob
	}
	if m, err = message(from.place, &f, queue, e.raw, score); err != nil {
		return m, noJob
	}
	return m, nil
}

// check returns a reason if a job cannot come in under any rules.
func check(job []byte) error {
	// ParseJob has a limit of depth, and gjson has none.
	parsed, err := wire.ParseJob(job)
	if err != nil || !utf8.Valid(job) || parsed.JID == "" || !gjson.GetBytes(job, "args").IsArray() {
		return noJob
	}
	for _, u := range unsupported {
		if v := gjson.GetBytes(job, u.member); v.Type != gjson.Null && v.Type != gjson.False {
			return u.why
		}
	}
	return nil
}

// has reports whether a job has a member that is not null.
func has(job []byte, member string) bool { return gjson.GetBytes(job, member).Type != gjson.Null }

// message returns the message for a job that is as Millrace has it.
func message(from place, f *failure, queue string, job []byte, score float64) (m wire.Message, err error) {
	at := time.UnixMicro(int64(score * 1e6))
	m = wire.Message{MessageID: wire.Property(f.JID), Type: wire.Property(gjson.GetBytes(job, "class").Str), Timestamp: time.Now(), Body: job}
	switch {
	case from == list:
		m.Exchange, m.Key = wire.ExchangeDirect, queue
		parsed, err := wire.ParseJob(job)
		m.Priority = parsed.Priority
		return m, err
	case from == dead:
		m.Key, m.Body = wire.DeadJobs, f.Dead(queue, job, wire.ReasonExhausted, at)
	case from == retries && f.failed:
		m.Key, m.Body = wire.Retries, f.Retry(queue, job, f.at, at)
	default:
		m.Key, m.Body = wire.ScheduledJobs, wire.ScheduledJob(f.JID, score, job)
	}
	_, err = wire.ParseEntry(m.Key, 0, m.Body)
	return m, err
}

// failure is the last failure of a job.
type failure struct {
	wire.Failure
	failed bool // the job has failed
	at     time.Time
}

func failureOf(job []byte) failure {
	count := gjson.GetBytes(job, "retry_count")
	f := failure{failed: count.Type == gjson.Number, at: time.Now()}
	f.JID, f.RetryCount = gjson.GetBytes(job, "jid").Str, int(count.Int())
	f.ErrorClass, f.ErrorMessage = gjson.GetBytes(job, "error_class").Str, gjson.GetBytes(job, "error_message").Str
	f.Backtrace = backtrace(gjson.GetBytes(job, "error_backtrace"))
	for _, member := range []string{"failed_at", "retried_at"} { // the later one
		if at := gjson.GetBytes(job, member); at.Type == gjson.Number {
			f.at = timeOf(at.Num)
		}
	}
	return f
}

// timeOf reads a time of a job: whole milliseconds since Sidekiq 8, seconds with a fraction before.
func timeOf(at float64) time.Time {
	if at > wire.MillisAbove {
		return time.UnixMilli(int64(at))
	}
	return time.UnixMicro(int64(at * 1e6))
}

// longestBacktrace is how much of a backtrace is read, in bytes.
const longestBacktrace = 1 << 20

// backtrace returns the lines of a backtrace: Sidekiq keeps them as JSON, compressed, in Base64.
func backtrace(v gjson.Result) string {
	packed, err := base64.StdEncoding.DecodeString(v.Str)
	if v.Str == "" || err != nil {
		return ""
	}
	unpack, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return ""
	}
	defer unpack.Close()
	text, err := io.ReadAll(io.LimitReader(unpack, longestBacktrace))
	var lines []string
	if err != nil || json.Unmarshal(text, &lines) != nil {
		return ""
	}
	return strings.Join(lines, "\n")
}

// toSidekiq returns a job of a queue as Sidekiq has it.
func toSidekiq(job []byte, jid, queue string, now time.Time) ([]byte, error) {
	if !gjson.GetBytes(job, "args").IsArray() {
		return nil, errors.New("its args are no array, and Sidekiq runs only jobs whose args are one")
	}
	e := edit{raw: job}
	class := gjson.GetBytes(job, "class").Str
	if gjson.GetBytes(job, "args.0.job_class").Str == class {
		e.set("class", wire.Quote(wrapper))
		e.set("wrapped", wire.Quote(class))
	}
	e.set("jid", wire.Quote(jid))
	e.set("queue", wire.Quote(queue))
	// Sidekiq forgets a job without retries when it fails, unless it counts them.
	switch gjson.GetBytes(job, "retry").Type {
	case gjson.Null:
		e.set("retry", "true")
	case gjson.False:
		if gjson.GetBytes(job, "dead").Type != gjson.False {
			e.set("retry", "0")
		}
	}
	// Sidekiq takes whole numbers for milliseconds, and others for seconds.
	for _, member := range []string{"created_at", "failed_at", "retried_at"} {
		if at := gjson.GetBytes(job, member); at.Type == gjson.Number {
			e.set(member, secondsText(timeOf(at.Num)))
		}
	}
	e.set("enqueued_at", secondsText(now))
	if count := gjson.GetBytes(job, "retry_count").Int(); count > 0 {
		e.set("retry_count", strconv.FormatInt(count-1, 10))
		if !has(job, "failed_at") {
			e.set("failed_at", secondsText(now)) // a retry needs it
		}
	} else {
		e.remove("retry_count")
	}
	return e.raw, e.err
}

func secondsText(t time.Time) string { return strconv.FormatFloat(wire.Seconds(t), 'f', 6, 64) }

// edit changes members of an object, and leaves all other bytes as they are.
type edit struct {
	raw []byte
	err error
}

func (e *edit) set(member, value string) {
	if e.err == nil {
		e.raw, e.err = wire.SetRaw(e.raw, member, value)
	}
}

func (e *edit) remove(member string) {
	if e.err == nil && gjson.GetBytes(e.raw, member).Exists() {
		e.raw, e.err = sjson.DeleteBytes(e.raw, member)
	}
}

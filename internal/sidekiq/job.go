package sidekiq

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace-jobs/millrace/wire"
)

// place is where a job is in Redis.
type place int

const (
	list place = iota // of a queue
	schedule
	retries
	dead
)

func (p place) String() string { return [...]string{"queue", "schedule", "retry", "dead"}[p] }

// wrapper is the class of Sidekiq that runs a job of Active Job. Its member "wrapped" has the class
// of that job, and its only argument is that job.
const wrapper = "Sidekiq::ActiveJob::Wrapper"

// oldWrapper is what Rails calls it.
const oldWrapper = "ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper"

// reason says why a job stays in Redis.
type reason string

const (
	noJob     reason = "no job"
	batch     reason = "belongs to a batch"
	encrypted reason = "encrypted"
	unique    reason = "unique"
	elsewhere reason = "its queue is not taken"
)

func (r reason) Error() string { return string(r) }

// only are members whose jobs Millrace cannot run: it does not have what they ask for.
var only = map[string]reason{"bid": batch, "encrypt": encrypted, "unique_for": unique, "unique_token": unique}

// In returns the message that enters a job, as Sidekiq has it in some place. score is that of the
// place, if it has one. The error is a reason if the job must stay in Redis.
func (r Rules) in(from place, job []byte, score float64) (m wire.Message, err error) {
	if !gjson.ValidBytes(job) || job[0] != '{' {
		return m, noJob
	}
	class := gjson.GetBytes(job, "class").Str
	if !gjson.GetBytes(job, "args").IsArray() || class == "" || gjson.GetBytes(job, "jid").Str == "" {
		return m, noJob
	}
	for member, why := range only {
		if v := gjson.GetBytes(job, member); v.Exists() && v.Type != gjson.Null && v.Type != gjson.False {
			return m, why
		}
	}
	e := edit{raw: job}
	if wrapped := gjson.GetBytes(job, "wrapped").Str; wrapped != "" && (class == wrapper || class == oldWrapper) {
		class = wrapped
		e.set("class", quote(class))
		e.remove("wrapped")
	}
	named := gjson.GetBytes(job, "queue").Str
	queue, ok := r.queueOf(class, named)
	if !ok {
		return m, elsewhere
	}
	if queue != named {
		e.set("queue", quote(queue))
	}
	f := failureOf(job)
	if f.failed {
		// Sidekiq counts the retries that there were, Millrace the failures.
		e.set("retry_count", strconv.Itoa(f.RetryCount+1))
		e.remove("error_backtrace")
	}
	if e.err != nil {
		return m, e.err
	}
	return entered(from, &f, queue, e.raw, score)
}

// entered returns the message for a job that is as Millrace has it.
func entered(from place, f *failure, queue string, job []byte, score float64) (m wire.Message, err error) {
	due := time.UnixMicro(int64(score * 1e6))
	m = wire.Message{MessageID: wire.Property(f.JID), Type: wire.Property(gjson.GetBytes(job, "class").Str), Timestamp: time.Now(), Body: job}
	switch from {
	case list:
		m.Exchange, m.Key = wire.ExchangeDirect, queue
		parsed, err := wire.ParseJob(job)
		m.Priority = parsed.Priority
		return m, err
	case schedule:
		m.Key, m.Body = wire.ScheduledJobs, wire.ScheduledJob(f.JID, score, job)
	case retries:
		m.Key, m.Body = wire.Retries, f.Retry(queue, job, f.at, due)
	case dead:
		m.Key, m.Body = wire.DeadJobs, f.Dead(queue, job, wire.ReasonExhausted, due)
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
	f := failure{failed: count.Type == gjson.Number, at: timeOf(gjson.GetBytes(job, "retried_at"))}
	f.JID, f.RetryCount = gjson.GetBytes(job, "jid").Str, int(count.Int())
	f.ErrorClass, f.ErrorMessage = gjson.GetBytes(job, "error_class").Str, gjson.GetBytes(job, "error_message").Str
	f.Backtrace = backtrace(gjson.GetBytes(job, "error_backtrace"))
	if f.at.IsZero() {
		f.at = timeOf(gjson.GetBytes(job, "failed_at"))
	}
	return f
}

// timeOf reads a time of a job: whole milliseconds since Sidekiq 8, seconds with a fraction before.
func timeOf(v gjson.Result) time.Time {
	switch {
	case v.Type != gjson.Number:
		return time.Time{}
	case v.Num > 1e11:
		return time.UnixMilli(int64(v.Num))
	}
	return time.UnixMicro(int64(v.Num * 1e6))
}

// longestBacktrace is how much of a backtrace is read.
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

// out returns a job of a queue as Sidekiq has it.
func out(job []byte, jid, queue string, now time.Time) ([]byte, error) {
	if !gjson.GetBytes(job, "args").IsArray() {
		return nil, errors.New("its args are no array, and Sidekiq runs only jobs whose args are one")
	}
	e := edit{raw: job}
	class := gjson.GetBytes(job, "class").Str
	if gjson.GetBytes(job, "args.0.job_class").Str == class {
		e.set("class", quote(wrapper))
		e.set("wrapped", quote(class))
	}
	e.set("jid", quote(jid))
	e.set("queue", quote(queue))
	if count := gjson.GetBytes(job, "retry_count"); count.Int() > 0 {
		e.set("retry_count", strconv.FormatInt(count.Int()-1, 10))
	} else {
		e.remove("retry_count")
	}
	// Sidekiq takes whole numbers for milliseconds, and others for seconds.
	for _, member := range []string{"created_at", "failed_at"} {
		if at := gjson.GetBytes(job, member); at.Type == gjson.Number {
			e.set(member, secondsText(timeOf(at)))
		}
	}
	e.set("enqueued_at", secondsText(now))
	return e.raw, e.err
}

// quote returns a text as a JSON string.
func quote(s string) string { return string(gjson.AppendJSONString(nil, s)) }

func secondsText(t time.Time) string { return strconv.FormatFloat(wire.Seconds(t), 'f', 6, 64) }

// edit changes members of an object, and leaves all other bytes as they are.
type edit struct {
	raw []byte
	err error
}

func (e *edit) set(member, value string) {
	if e.err == nil {
		e.raw, e.err = sjson.SetRawBytesOptions(e.raw, member, []byte(value), &sjson.Options{})
		e.checked(member)
	}
}

func (e *edit) remove(member string) {
	if e.err == nil && gjson.GetBytes(e.raw, member).Exists() {
		e.raw, e.err = sjson.DeleteBytes(e.raw, member)
		e.checked(member)
	}
}

func (e *edit) checked(member string) {
	if e.err != nil {
		e.err = fmt.Errorf("%s cannot be changed: %w", member, e.err)
	}
}

package millrace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// RawJob is a job as it was delivered, with args that are not decoded. Middleware, hooks and
// handlers of Worker.Handle get it. A Job contains one.
type RawJob struct {
	JID         string
	Class       string
	Args        json.RawMessage // as they were enqueued; nil if there are none
	Queue       string          // the queue that the job came from
	Attempt     int             // 1 for the first
	RetryCount  int             // how often the job has failed
	MaxAttempts int             // limit of attempts
	Priority    uint8
	Tags        []string
	Headers     map[string]any // of the message
	UserID      string         // user_id of the message, which the broker has checked; "" if it has none
	Raw         []byte         // the bytes of the job; must not be changed

	expiresAt  time.Time
	enqueuedAt time.Time // zero if the job does not say
	timeout    time.Duration
	backtrace  int // lines of a stack to keep
	bury       bool
	stopping   <-chan struct{}
}

// Stopping returns a channel that is closed when the worker begins to stop. The handler may
// continue until its context ends, at the end of the stop timeout.
func (j *RawJob) Stopping() <-chan struct{} { return j.stopping }

// Traceparent returns the job's W3C trace context, or "".
func (j *RawJob) Traceparent() string { return wire.Traceparent(j.Headers[headerTraceparent]) }

const headerTraceparent = "traceparent"

// Fields returns the job's own members, which EnqueueOptions.Fields set. Numbers are json.Number.
//
//	tenant, _ := job.Fields()["tenant"].(string)
func (j *RawJob) Fields() map[string]any {
	fields := map[string]any{}
	gjson.ParseBytes(j.Raw).ForEach(func(name, value gjson.Result) bool {
		if !reserved[name.String()] {
			var field any
			if decode([]byte(value.Raw), &field) == nil {
				fields[name.String()] = field
			}
		}
		return true
	})
	return fields
}

// Bind decodes the args into variables, with one pointer for each. A number in an any becomes a
// json.Number, which keeps its precision. Everything else is decoded as encoding/json does.
func (j *RawJob) Bind(into ...any) error {
	var args []json.RawMessage
	if len(j.Args) > 0 {
		if err := json.Unmarshal(j.Args, &args); err != nil {
			return fmt.Errorf("millrace: args of %s: %w", j.Class, err)
		}
	}
	if len(args) != len(into) {
		return fmt.Errorf("millrace: the handler of %s takes %s, the job has %d", j.Class, count(len(into), "arg"), len(args))
	}
	for i, arg := range args {
		if err := decode(arg, into[i]); err != nil {
			return fmt.Errorf("millrace: arg %d of %s: %w", i+1, j.Class, err)
		}
	}
	return nil
}

// decode decodes JSON. A number in an any becomes a json.Number.
func decode(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

type jobKey struct{}

// JobFrom returns the job whose handler has this context, or nil.
func JobFrom(ctx context.Context) *RawJob {
	job, _ := ctx.Value(jobKey{}).(*RawJob)
	return job
}

var errNotUTF8 = errors.New("job is not UTF-8")

// parseJob parses a delivery. It returns an error for a message that no worker can decode.
func parseJob(d *amqp.Delivery, queue string) (*RawJob, error) {
	if !utf8.Valid(d.Body) {
		return nil, errNotUTF8
	}
	parsed, err := wire.ParseDelivered(d.Body)
	if err != nil {
		return nil, err
	}
	j := &RawJob{
		JID: parsed.JID, Class: parsed.Class, Queue: queue, Attempt: parsed.RetryCount + 1, RetryCount: parsed.RetryCount, MaxAttempts: parsed.Retry + 1,
		Priority: parsed.Priority, Tags: parsed.Tags, Headers: d.Headers, UserID: d.UserId, Raw: d.Body, expiresAt: parsed.ExpiresAt, bury: parsed.Dead,
	}
	if j.JID == "" {
		j.JID = nameless(d)
	}
	j.readMore()
	if j.enqueuedAt.IsZero() {
		j.enqueuedAt = d.Timestamp
	}
	return j, nil
}

// readMore reads the members that only workers use. A value of another type is not an error.
func (j *RawJob) readMore() {
	more := gjson.GetManyBytes(j.Raw, "args", "timeout", "backtrace", "enqueued_at")
	if more[0].Exists() && more[0].Type != gjson.Null {
		j.Args = json.RawMessage(more[0].Raw)
	}
	j.timeout = seconds(more[1])
	switch more[2].Type {
	case gjson.Null: // also if it is missing
		j.backtrace = defaultBacktrace
	case gjson.True:
		j.backtrace = allLines
	case gjson.Number:
		j.backtrace = int(min(max(more[2].Num, 0), allLines))
	}
	if at := more[3]; at.Type == gjson.Number {
		j.enqueuedAt = clock(at.Num)
	}
}

const (
	defaultBacktrace = 20  // lines of a stack to keep if the job does not say
	allLines         = 100 // most lines
)

func seconds(v gjson.Result) time.Duration {
	if v.Type != gjson.Number || !(v.Num > 0 && v.Num < math.MaxInt64/1e9) {
		return 0
	}
	return time.Duration(math.Round(v.Num * float64(time.Second)))
}

// clock returns a time of the format. A number that would be absurd as seconds is milliseconds.
func clock(at float64) time.Time {
	if math.Abs(at) > 1e11 {
		at /= 1000
	}
	if math.Abs(at) > 1e11 {
		return time.Time{}
	}
	return time.UnixMicro(int64(at * 1e6))
}

// nameless returns the jid of a job that has none: the id of its message, or a hash of its bytes.
// It is the same at each delivery.
func nameless(d *amqp.Delivery) string {
	if d.MessageId != "" {
		return d.MessageId
	}
	sum := sha256.Sum256(d.Body)
	return hex.EncodeToString(sum[:12])
}

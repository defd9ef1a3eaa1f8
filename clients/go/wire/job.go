package wire

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// DefaultRetry is how often a job is retried that does not say otherwise.
const DefaultRetry = 25

// MaxPriority is the highest priority of a job. Job queues are declared with it.
const MaxPriority = 10

// Job is what Millrace reads of a job. Raw is the whole job, as its owner wrote it.
type Job struct {
	JID        string
	Class      string
	Queue      string
	Retry      int // most retries; 0 means none
	RetryCount int
	Priority   uint8
	ExpiresAt  time.Time // zero means never
	Dead       bool      // false: discard the job when it is exhausted or expired
	Tags       []string
	Gated      bool      // limits apply to it
	LimitKey   string    // of a gated job: what limits per key count it under
	GateAt     time.Time // of a gated job: when it is due in jobs.gated; zero: at once
	Unique     *Unique   // of a gated job; nil: it is not unique
	Raw        []byte
}

// JobMembers are the members of a job that Millrace reads. All others belong to its owner.
var JobMembers = Set("jid", "class", "queue", "retry", "retry_count", "priority", "created_at", "enqueued_at", "expires_at", "timeout",
	"dead", "tags", "error_class", "error_message", "failed_at", "gate")

// ParseJob parses a job of a queue.
func ParseJob(body []byte) (Job, error) { return parse(body, JobMembers) }

// deliveredMembers are the members of a job that a worker reads. What the gate says has been done
// when the job is delivered.
var deliveredMembers = without(JobMembers, "gate")

// ParseDelivered parses a job that was delivered to a worker. It does not read the gate.
func ParseDelivered(body []byte) (Job, error) { return parse(body, deliveredMembers) }

func parse(body []byte, known map[string]bool) (Job, error) {
	if err := CheckRecord(body); err != nil {
		return Job{}, err
	}
	if err := CheckDepth(body, MaxJobDepth); err != nil {
		return Job{}, err
	}
	return reread(string(body), known)
}

// RereadJob parses a job from JSON that is known to be valid.
func RereadJob(raw string) (Job, error) { return reread(raw, JobMembers) }

func reread(raw string, known map[string]bool) (Job, error) {
	o, err := ParseObject(raw, known)
	if err != nil {
		return Job{}, fmt.Errorf("job: %w", err)
	}
	job, err := o.job()
	if err != nil {
		return Job{}, fmt.Errorf("job: %w", err)
	}
	job.Raw = []byte(raw)
	return job, nil
}

func (o Object) job() (job Job, err error) {
	if job.JID, err = o.Text("jid"); err != nil {
		return job, err
	}
	if job.Class, err = o.Text("class"); err != nil {
		return job, err
	}
	if job.Class == "" {
		return job, fmt.Errorf("member \"class\" is missing")
	}
	if job.Queue, err = o.Queue(); err != nil {
		return job, err
	}
	if job.Retry, err = o.retry(); err != nil {
		return job, err
	}
	return job, o.jobOptions(&job)
}

func (o Object) jobOptions(job *Job) error {
	n, err := o.Count("retry_count", 1<<31)
	if err != nil {
		return err
	}
	job.RetryCount = int(n)
	if n, err = o.Count("priority", MaxPriority); err != nil {
		return err
	}
	job.Priority = uint8(n)
	if job.ExpiresAt, err = o.Time("expires_at"); err != nil {
		return err
	}
	if job.Dead, err = o.Flag("dead", true); err != nil {
		return err
	}
	if job.Tags, err = o.Texts("tags"); err != nil {
		return err
	}
	return o.gate(job)
}

// MaxLimitKey is the length in bytes of the longest key of a gated job.
const MaxLimitKey = 200

// CheckLimitKey returns an error if no job can have this key.
func CheckLimitKey(key string) error {
	switch {
	case len(key) > MaxLimitKey:
		return fmt.Errorf("limit key is %d bytes long, at most %d are allowed", len(key), MaxLimitKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("limit key is not valid UTF-8")
	case strings.ContainsFunc(key, unicode.IsControl):
		return fmt.Errorf("limit key has a control character")
	}
	return nil
}

var gateMembers = Set("key", "at", "unique")

// gate reads the member "gate", if it is an object. Anything else under that name is the owner's.
func (o Object) gate(job *Job) error {
	raw := o.At("gate")
	if !raw.IsObject() {
		return nil
	}
	gate, err := ParseObject(raw.Raw, gateMembers)
	if err != nil {
		return fmt.Errorf("member \"gate\": %w", err)
	}
	job.Gated = true
	if err := gate.readGate(job); err != nil {
		return fmt.Errorf("member \"gate\": %w", err)
	}
	return nil
}

func (o Object) readGate(job *Job) (err error) {
	if job.LimitKey, err = o.Text("key"); err != nil {
		return err
	}
	if err := CheckLimitKey(job.LimitKey); err != nil {
		return err
	}
	if job.GateAt, err = o.Time("at"); err != nil {
		return err
	}
	job.Unique, err = o.unique()
	return err
}

// Queue returns the queue of a job, or the default queue if it names none.
func (o Object) Queue() (string, error) {
	name, err := o.Text("queue")
	if err != nil {
		return "", err
	}
	if !o.Has("queue") {
		return DefaultQueue, nil
	}
	return name, CheckQueueName(name)
}

func (o Object) retry() (int, error) {
	if !o.Has("retry") {
		return DefaultRetry, nil
	}
	switch o.At("retry").Type {
	case gjson.True:
		return DefaultRetry, nil
	case gjson.False:
		return 0, nil
	}
	n, err := o.Count("retry", 1<<31)
	if err != nil {
		return 0, fmt.Errorf("member \"retry\" must be a whole number, true or false")
	}
	return int(n), nil
}

// CheckQueueName returns an error if no queue can have this name.
func CheckQueueName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("queue name is empty")
	case len(name) > MaxQueueName:
		return fmt.Errorf("queue name is %d bytes long, at most %d are allowed", len(name), MaxQueueName)
	case !utf8.ValidString(name):
		return fmt.Errorf("queue name is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("queue name has a control character")
	}
	return nil
}

// WithQueue returns a job with its queue filled in, if it names none. Without that, a job that
// comes back would go to the default queue.
func WithQueue(job []byte, queue string) ([]byte, error) {
	o, err := ParseObject(string(job), JobMembers)
	if err != nil {
		return nil, err
	}
	if o.Has("queue") || CheckQueueName(queue) != nil {
		return job, nil
	}
	return SetRaw(job, "queue", Quote(queue))
}

// ForQueue returns a parsed job with its queue replaced.
func ForQueue(job []byte, queue string) ([]byte, error) {
	if err := CheckQueueName(queue); err != nil {
		return nil, err
	}
	o, err := ParseObject(string(job), JobMembers)
	if err != nil {
		return nil, err
	}
	if o.At("queue").String() == queue {
		return job, nil
	}
	return SetRaw(job, "queue", Quote(queue))
}

// SetRaw sets one member of an object, and leaves every other byte unchanged.
func SetRaw(raw []byte, name, value string) ([]byte, error) {
	out, err := sjson.SetRawBytesOptions(raw, name, []byte(value), &sjson.Options{Optimistic: false})
	if err != nil {
		return nil, fmt.Errorf("wire: set %s: %w", name, err)
	}
	return out, nil
}

package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Reasons of a dead job.
const (
	ReasonExhausted = "exhausted"
	ReasonKilled    = "killed"
	ReasonExpired   = "expired"
	ReasonPoison    = "poison"
)

// Failure describes a failed job, in the record of a retry or a dead job.
type Failure struct {
	JID          string
	RetryCount   int // how often the job had failed before
	ErrorClass   string
	ErrorMessage string
	Backtrace    string
}

// failed is such a record without its job.
type failed struct {
	Type         string  `json:"type"`
	JID          string  `json:"jid"`
	RetryAt      float64 `json:"retry_at,omitempty"`
	DiedAt       float64 `json:"died_at,omitempty"`
	RetryCount   int     `json:"retry_count"`
	FailedAt     float64 `json:"failed_at,omitempty"`
	ErrorClass   string  `json:"error_class"`
	ErrorMessage string  `json:"error_message"`
	Backtrace    string  `json:"backtrace,omitempty"`
	Reason       string  `json:"reason,omitempty"`
}

// Retry returns the record of a job that will be retried. The job comes back to queue, unless it
// names another one.
func (f Failure) Retry(queue string, job []byte, at, due time.Time) []byte {
	r := f.record()
	r.Type, r.RetryAt, r.FailedAt, r.RetryCount = "retry", Seconds(due), Seconds(at), f.RetryCount+1
	return r.around(queue, job)
}

// Dead returns the record of a job that is given up.
func (f Failure) Dead(queue string, job []byte, reason string, at time.Time) []byte {
	r := f.record()
	r.Type, r.DiedAt, r.Reason = "dead_job", Seconds(at), reason
	return r.around(queue, job)
}

// Limits of an error in a record.
const (
	maxFailureClass   = 1024   // bytes
	maxFailureMessage = 10_000 // characters
)

func (f Failure) record() failed {
	return failed{JID: f.JID, RetryCount: f.RetryCount, ErrorClass: FirstBytes(validText(f.ErrorClass), maxFailureClass),
		ErrorMessage: firstRunes(validText(f.ErrorMessage), maxFailureMessage), Backtrace: validText(f.Backtrace)}
}

// around returns the record with the job's own bytes. It fills in the queue if the job names none,
// so that the job does not come back to the default queue.
func (f failed) around(queue string, job []byte) []byte {
	text, err := json.Marshal(f)
	if err != nil {
		// It cannot fail: no float here is infinite.
		panic(fmt.Sprintf("wire: a record of texts and numbers: %v", err))
	}
	// The job was parsed before, so this does not fail.
	if named, err := WithQueue(job, queue); err == nil {
		job = named
	}
	out := make([]byte, 0, len(text)+len(job)+len(`,"job":`))
	out = append(append(out, text[:len(text)-1]...), `,"job":`...)
	return append(append(out, job...), '}')
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func firstRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

package millrace

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-jobs/millrace/wire"
)

// head is a record without its job.
type head struct {
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

func retryRecord(j *Job, err error, failed, due time.Time) []byte {
	h := failure(j, err)
	h.Type, h.RetryAt, h.FailedAt, h.RetryCount = "retry", wire.Seconds(due), wire.Seconds(failed), j.RetryCount+1
	return h.around(j)
}

func deadRecord(j *Job, err error, reason string, died time.Time) []byte {
	h := failure(j, err)
	h.Type, h.DiedAt, h.RetryCount, h.Reason = "dead_job", wire.Seconds(died), j.RetryCount, reason
	return h.around(j)
}

// What a record says of an error at most.
const (
	maxErrorClass   = 1024
	maxErrorMessage = 10_000
)

func failure(j *Job, err error) head {
	lines := backtrace(err)
	lines = lines[:min(len(lines), j.backtrace)]
	return head{
		JID: j.JID, ErrorClass: firstBytes(valid(errorClass(err)), maxErrorClass), ErrorMessage: firstRunes(valid(err.Error()), maxErrorMessage),
		Backtrace: valid(strings.Join(lines, "\n")),
	}
}

// around puts the record around the job's own bytes.
func (h head) around(j *Job) []byte {
	text, err := json.Marshal(h)
	if err != nil {
		panic(fmt.Sprintf("millrace: a record of texts and numbers: %v", err)) // cannot be: no float here is infinite
	}
	body := comesBackTo(j.Raw, j.Queue)
	out := make([]byte, 0, len(text)+len(body)+len(`,"job":`))
	out = append(out, text[:len(text)-1]...)
	out = append(out, `,"job":`...)
	out = append(out, body...)
	return append(out, '}')
}

// comesBackTo is the job with the queue that it came from filled in, if it names none; otherwise it would come back to the default queue.
func comesBackTo(raw []byte, queue string) []byte {
	out, err := wire.WithQueue(raw, queue)
	if err != nil {
		return raw // it was parsed before: it has no such fault
	}
	return out
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

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

func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

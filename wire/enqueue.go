package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Sum returns the checksum of the request in a command enqueue.
func (c Command) Sum() string {
	at := "now"
	if c.At != nil {
		at = fmt.Sprint(*c.At)
	}
	sum := sha256.Sum256(append([]byte(at+"\n"), c.Job...))
	return hex.EncodeToString(sum[:16])
}

var errNoJob = errors.New("command enqueue needs a job: an object with a class")

// Entry returns the job of the command enqueue as a record of scheduled_jobs. It is due at its
// time, or now if it has none. A job without a jid gets jid.
func (c Command) Entry(now time.Time, jid string) (record []byte, e Entry, err error) {
	if len(c.Job) == 0 || c.Job[0] != '{' {
		return nil, e, errNoJob
	}
	job, err := withJID(c.Job, jid)
	if err != nil {
		return nil, e, fmt.Errorf("command enqueue: %w", err)
	}
	parsed, err := ParseJob(job)
	if err != nil {
		return nil, e, fmt.Errorf("command enqueue: %w", err)
	}
	at := Seconds(now)
	if c.At != nil {
		at = *c.At
	}
	record = ScheduledJob(parsed.JID, at, job)
	e, err = ParseEntry(ScheduledJobs, 0, record)
	if err != nil {
		return nil, e, fmt.Errorf("command enqueue: %w", err)
	}
	return record, e, nil
}

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

// jobArgs are the arguments and flags that make a job.
type jobArgs struct {
	Class string `arg:"" help:"Class of the job, such as SendEmail."`
	Args  string `arg:"" optional:"" default:"[]" name:"args-json" help:"The job's arguments, a JSON array: '[\"ann@example.com\", 3]'."`

	Queue    string   `short:"q" placeholder:"QUEUE" default:"default" help:"Queue, without \"queue.\" in front (${default})."`
	Retry    int      `placeholder:"N" default:"25" help:"Maximum number of retries (${default})."`
	Priority int      `placeholder:"N" default:"0" help:"Priority, 0 to 10, the highest first (${default})."`
	Tag      []string `help:"Tag; may be given several times." placeholder:"TAG"`
}

// job is a job as producers write it. Args stays as it was given: numbers keep all their digits.
type job struct {
	JID        string          `json:"jid"`
	Class      string          `json:"class"`
	Args       json.RawMessage `json:"args"`
	Queue      string          `json:"queue"`
	Retry      int             `json:"retry"`
	RetryCount int             `json:"retry_count"`
	Priority   int             `json:"priority,omitempty"`
	EnqueuedAt float64         `json:"enqueued_at"`
	Tags       []string        `json:"tags,omitempty"`
}

type scheduledJob struct {
	Type        string  `json:"type"`
	JID         string  `json:"jid"`
	ScheduledAt float64 `json:"scheduled_at"`
	Job         job     `json:"job"`
}

// job makes a job with a jid of its own, and checks it as the sidecar would.
func (a *jobArgs) job(now time.Time) (job, error) {
	if err := checkArgs(a.Args); err != nil {
		return job{}, err
	}
	j := job{
		JID: newJID(), Class: a.Class, Args: json.RawMessage(a.Args), Queue: a.Queue, Retry: a.Retry,
		Priority: a.Priority, EnqueuedAt: wire.Seconds(now), Tags: a.Tag,
	}
	body, err := encode(j)
	if err != nil {
		return job{}, err
	}
	_, err = wire.ParseJob(body)
	return j, usage.Fault(err)
}

func checkArgs(args string) error {
	const hint = `must be a JSON array, such as '["ann@example.com", 3]' (in single quotes, so that the shell leaves it alone)`
	var list []json.RawMessage
	err := json.Unmarshal([]byte(args), &list)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return usage.Errorf("arguments %s: %w at character %d", hint, err, syntax.Offset)
	case err != nil || list == nil:
		return usage.Errorf("arguments %s", hint)
	}
	return nil
}

func newJID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// encode is json.Marshal without its escapes for HTML, which would change the owner's bytes.
func encode(v any) ([]byte, error) {
	var buffer bytes.Buffer
	e := json.NewEncoder(&buffer)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

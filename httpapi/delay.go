package httpapi

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/internal/messages"
	"github.com/millrace-jobs/millrace/wire"
)

// maxDelay is how many seconds a message can be delayed by at most: a hundred years.
const maxDelay = 100 * 366 * 24 * 60 * 60

// ofJob are the members of a request that are those of the job. All others are the message's.
var ofJob = []string{"at", "jid", "retry", "tags"}

// delay schedules the job that delivers a message.
func (e *enqueueAPI) delay(in *problem.Request) error {
	raw, key := readJob(in)
	if in.Err() != nil {
		return in.Err()
	}
	job, err := jobOfMessage(raw, key, e.now())
	if err != nil {
		return err
	}
	return e.answerOne(in, job, key)
}

// jobOfMessage returns the job, as enqueue takes it.
func jobOfMessage(raw []byte, key string, now time.Time) ([]byte, error) {
	var message map[string]json.RawMessage
	if err := json.Unmarshal(raw, &message); err != nil || message == nil {
		return nil, problem.BadRequest("the body must be a message, which is a JSON object")
	}
	if err := setTime(message, key, now); err != nil {
		return nil, err
	}
	job := map[string]any{"class": wire.MessageClass, "queue": wire.MessageQueue}
	for _, name := range ofJob {
		if value, given := message[name]; given {
			job[name] = value
			delete(message, name)
		}
	}
	argument, err := unescaped(message)
	if err != nil {
		return nil, err
	}
	if err := messages.Check(argument); err != nil {
		return nil, problem.BadRequest("%s", problem.Shorten(err.Error()))
	}
	job["args"] = []json.RawMessage{argument}
	return unescaped(job)
}

// setTime replaces the member in by the member at.
func setTime(message map[string]json.RawMessage, key string, now time.Time) error {
	at, in := given(message["at"]), given(message["in"])
	switch {
	case at && in:
		return problem.BadRequest("the message has at and in: one of them is enough")
	case !at && !in:
		return problem.BadRequest("member at or in is missing: it says when the message is delivered")
	case at:
		delete(message, "in")
		return nil
	case key != "":
		return problem.BadRequest("a message with an %s needs at in place of in: with in, the repeated message would be another one", headerKey)
	}
	seconds, err := strconv.ParseFloat(string(message["in"]), 64)
	if err != nil || !(seconds >= 0 && seconds <= maxDelay) {
		return problem.BadRequest("member in must be a number of seconds from 0 to %d", int64(maxDelay))
	}
	delete(message, "in")
	message["at"] = json.RawMessage(secondsText(wire.Seconds(now.Add(time.Duration(seconds * float64(time.Second))))))
	return nil
}

// given reports whether a member is there, and not null.
func given(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// unescaped encodes a value whose texts stay as they are.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

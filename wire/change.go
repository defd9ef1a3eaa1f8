package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Changes are what a user changes of an entry. A nil field stays as it is.
type Changes struct {
	At       *time.Time
	Queue    *string
	Priority *int64
	Args     json.RawMessage
}

var changeMembers = shared.Set("at", "queue", "priority", "args")

// ParseChanges parses the changes of an entry of a stream.
func ParseChanges(stream string, raw []byte) (Changes, error) {
	var c Changes
	if len(raw) == 0 {
		return c, errNoChange
	}
	if err := shared.CheckRecord(raw); err != nil {
		return c, fmt.Errorf("changes: %w", err)
	}
	var unknown error
	gjson.ParseBytes(raw).ForEach(func(key, _ gjson.Result) bool {
		if !changeMembers[key.String()] {
			unknown = fmt.Errorf("%q cannot be changed: use at, queue, priority or args", Shorten(key.String(), 40))
		}
		return unknown == nil
	})
	if unknown != nil {
		return c, unknown
	}
	o, err := shared.ParseObject(string(raw), changeMembers)
	if err != nil {
		return c, fmt.Errorf("changes: %w", err)
	}
	return c, c.read(stream, o)
}

var errNoChange = errors.New("nothing is to be changed: give at, queue, priority or args")

func (c *Changes) read(stream string, o shared.Object) error {
	if len(o) == 0 {
		return errNoChange
	}
	for _, m := range o {
		if m.Value.Type == gjson.Null {
			return fmt.Errorf("member %q is null: leave out what is to stay as it is", m.Name)
		}
	}
	if at, given := o.Get("at"); given {
		switch stream {
		case DeadJobs:
			return errors.New("a dead job has no time that could be changed: retry it")
		case Gated:
			return errors.New("a job that waits for its queue is due already: it has no time that could be changed")
		}
		t, err := readAt(at)
		if err != nil {
			return err
		}
		c.At = &t
	}
	if _, given := o.Get("queue"); given {
		name, err := o.Queue()
		if err != nil {
			return err
		}
		c.Queue = &name
	}
	if _, given := o.Get("priority"); given {
		n, err := o.Count("priority", MaxPriority)
		if err != nil {
			return err
		}
		c.Priority = &n
	}
	if args, given := o.Get("args"); given {
		if !args.IsArray() && !args.IsObject() {
			return errors.New("member \"args\" must be an array or an object")
		}
		c.Args = json.RawMessage(args.Raw)
	}
	return nil
}

// readAt parses a time as people and programs write it: RFC 3339, or seconds since 1970.
func readAt(v gjson.Result) (time.Time, error) {
	if v.Type != gjson.String {
		t, err := shared.ParseTime("at", v)
		if err != nil {
			return t, fmt.Errorf("%w, or a time like 2026-01-31T12:00:00Z", err)
		}
		return t, nil
	}
	t, err := time.Parse(time.RFC3339Nano, v.String())
	if err != nil {
		return t, fmt.Errorf("member \"at\" is %q: it must be seconds since 1970 or a time like 2026-01-31T12:00:00Z", Shorten(v.String(), 40))
	}
	if s := t.Unix(); s < shared.Earliest || s > shared.Latest {
		return t, errors.New("member \"at\" is out of range: the years 1 to 9999 are allowed")
	}
	if rounded := t.Truncate(time.Microsecond); rounded.Before(t) { // never early
		t = rounded.Add(time.Microsecond)
	}
	return t.UTC(), nil
}

// Change returns the entry's record with the changes. Every other byte stays as its owner wrote it.
func (e *Entry) Change(c Changes) ([]byte, error) {
	record, err := WithEntryJID(e.Raw, e)
	if err != nil {
		return nil, err
	}
	job, err := e.changeJob(c)
	if err != nil {
		return nil, err
	}
	if e.Stream == Gated {
		record, err = withJID(job, e.JID)
	} else {
		record, err = shared.SetRaw(record, "job", string(job))
	}
	if err != nil {
		return nil, err
	}
	if c.At != nil {
		if record, err = shared.SetRaw(record, kinds[e.Stream].at, seconds(*c.At)); err != nil {
			return nil, err
		}
	}
	if _, err := ParseEntry(e.Stream, e.Offset, record); err != nil {
		return nil, fmt.Errorf("changed like that it could not be read: %w", err)
	}
	return record, nil
}

func (e *Entry) changeJob(c Changes) ([]byte, error) {
	job := e.Job.Raw
	// The job may have the member twice, and a worker might read the other one.
	if len(c.Args) > 0 {
		if _, err := shared.ParseObject(string(job), shared.Set("args")); err != nil {
			return nil, fmt.Errorf("the job cannot be edited: %w", err)
		}
	}
	edits := []struct{ name, value string }{}
	if c.Queue != nil {
		edits = append(edits, struct{ name, value string }{"queue", shared.Quote(*c.Queue)})
	}
	if c.Priority != nil {
		edits = append(edits, struct{ name, value string }{"priority", strconv.FormatInt(*c.Priority, 10)})
	}
	if len(c.Args) > 0 {
		edits = append(edits, struct{ name, value string }{"args", string(c.Args)})
	}
	var err error
	for _, edit := range edits {
		if job, err = shared.SetRaw(job, edit.name, edit.value); err != nil {
			return nil, err
		}
	}
	return job, nil
}

// Undoable reports whether an act can be undone. what is the type of its journal record or its op.
func Undoable(what string) bool {
	return what == TypeDeleted || what == TypeKilled || what == TypeChanged
}

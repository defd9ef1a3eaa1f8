package importer

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace-jobs/millrace/wire"
)

// record makes an entry of a line that is a record of an entry stream, as the export writes it and
// as lists have it.
func (m *maker) record(e *entry, text []byte, top gjson.Result) error {
	text, err := without(text, []string{"millrace"})
	if err != nil {
		return err
	}
	p, err := placeOfRecord(top)
	if err != nil {
		return err
	}
	e.state = p.state
	if e.stream() != "" {
		return m.failed(e, text, top)
	}
	job := []byte(top.Get("job").Raw)
	if jid := top.Get("jid"); jid.Type == gjson.String {
		e.jid = jid.Str
	}
	if err := nothingLost(top); err != nil {
		return err
	}
	if job, err = m.named(e, job, top.Get("job.jid")); err != nil {
		return err
	}
	if p == due {
		return m.command(e, job, nil)
	}
	checked, err := wire.ParseEntry(wire.ScheduledJobs, 0, text)
	if err != nil {
		return reasonOf(err)
	}
	return m.command(e, job, new(wire.Seconds(checked.At)))
}

// failed makes an entry of the record of a retry or dead job, which is published as it is.
func (m *maker) failed(e *entry, text []byte, top gjson.Result) (err error) {
	inner := top.Get("job.jid")
	if inner.Type == gjson.String {
		e.jid = inner.Str
	}
	if outer := top.Get("jid"); outer.Type == gjson.String && outer.Str != "" || e.jid == "" {
		text, err = m.named(e, text, outer)
	}
	if err != nil {
		return err
	}
	return m.publish(e, text)
}

// placeOfRecord returns the place of a record: its type names it, or the member with its time.
// Without both, it is a job that waits for its queue, and is due.
func placeOfRecord(top gjson.Result) (place, error) {
	named := top.Get("type")
	for _, p := range []place{scheduled, retry, dead} {
		member := p.member
		if p == scheduled {
			member = "scheduled_at"
		}
		if named.Str == p.record || !given(top, "type") && given(top, member) {
			return p, nil
		}
	}
	if named.Type != gjson.Null {
		return due, fmt.Errorf("type is %s: use scheduled_job, retry or dead_job", wire.Shorten(named.Raw, 60))
	}
	return due, nil
}

// nothingLost refuses a record with members that the entry of a scheduled job does not have.
func nothingLost(top gjson.Result) (err error) {
	top.ForEach(func(key, value gjson.Result) bool {
		switch name := key.String(); name {
		case "type", "jid", "scheduled_at", "job", "millrace":
		default:
			if value.Type != gjson.Null {
				err = fmt.Errorf("the member %q stands beside the job, where it would be lost: put it into the job", name)
			}
		}
		return err == nil
	})
	return err
}

// reasonOf words an error of package wire for a line.
func reasonOf(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("this is no job: %s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "command enqueue: "), "job: "))
}

// WithoutPlace returns an item of a list as the record that was published: without the member that
// the API adds. The second result says why the item is not the whole record, if it is not.
func WithoutPlace(item []byte) (record []byte, incomplete string, err error) {
	added := gjson.GetBytes(item, "millrace")
	switch {
	case added.Get("omitted").Exists():
		return nil, "its record could not be loaded: " + added.Get("omitted").String(), nil
	case added.Get("redacted").Bool():
		return nil, "values in it are hidden from this user", nil
	}
	record, err = sjson.DeleteBytes(item, "millrace")
	return record, "", err
}

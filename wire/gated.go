package wire

import (
	"fmt"
	"slices"
	"strconv"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// A record of jobs.gated is a bare job. It comes through the alternate exchange of jobs.direct or
// jobs.route, because no queue was bound for it, or it was published to the stream itself.

// HeaderCopy marks an entry of jobs.gated that replaces an older one there. The older one was a
// fire that found no queue. The value is the op of that fire.
const HeaderCopy = "millrace-copy"

// EntryOf parses one record of an entry stream. A job of jobs.gated is due when it arrived, or at
// the zero time if the transport does not report that.
func EntryOf(r *Record) (Entry, error) {
	body, err := EntryBody(r)
	if err != nil {
		return Entry{}, err
	}
	e, err := ParseEntry(r.Stream, r.Offset, body)
	if r.Stream == Gated {
		e.At = r.Time
	}
	return e, err
}

// EntryBody returns a record of an entry stream as it is stored and shown. For jobs.gated it is the
// job with the queue and the priority of its publish, so that the job itself says where it belongs.
func EntryBody(r *Record) ([]byte, error) {
	if r.Stream != Gated || r.Fault != "" {
		return r.Body, nil
	}
	job, err := ParseJob(r.Body)
	if err != nil {
		return nil, err
	}
	body := r.Body
	if through := []string{ExchangeDirect, ExchangeRoute, ExchangeFire, Unrouted}; slices.Contains(through, r.Exchange) {
		if body, err = ForQueue(body, r.Key); err != nil {
			return nil, err
		}
	}
	if priority := min(r.Priority, MaxPriority); priority > job.Priority {
		if body, err = shared.SetRaw(body, "priority", strconv.Itoa(int(priority))); err != nil {
			return nil, err
		}
	}
	return body, nil
}

func parseGated(offset int64, body []byte) (Entry, error) {
	job, err := ParseJob(body)
	if err == nil && job.JID == "" && len(body) > maxNameless {
		err = fmt.Errorf("job has %d bytes and no jid: at most %d are read then", len(body), maxNameless)
	}
	return gatedEntry(offset, job, body), err
}

func gatedEntry(offset int64, job Job, body []byte) Entry {
	e := Entry{Stream: Gated, Offset: offset, JID: job.JID, Attempt: job.RetryCount, Job: job, Raw: body}
	e.name()
	return e
}

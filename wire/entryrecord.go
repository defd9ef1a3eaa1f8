package wire

import (
	"math"

	"github.com/tidwall/gjson"
)

// EntryRecord is what a record of an entry stream says. It is an entry unless it has a Fault, a
// Barrier or a Probe. Of Millrace's own headers, only those of a trusted user are in it.
type EntryRecord struct {
	Entry
	Provenance
	Fault   string // why it cannot be read
	Barrier *Barrier
	Probe   *Probe

	Ours         bool          // a leader wrote it: it is void if another leader has followed
	Epoch        int64         // of that leader
	Replaces     *Replacement  // the entry for which it stands
	Announcement *Announcement // the request of a user that it carries out
	Dispatch     *Dispatch     // the burial, or the fire that found no queue
	Dropped      bool          // a queue dropped the dead job
	Lease        bool
	Slot         string // of a lease: the slot that the job holds; else the one that it held

	// Where the publisher of a unique job awaits the decision.
	ReplyTo       string
	CorrelationID string
}

// Barrier says that an epoch begins in an entry stream.
type Barrier struct {
	Epoch int64
	Read  int64 // how far its leader had read the stream; none is newer if the leader does not say it
}

// Replacement is what an entry says of an older one that it replaces.
type Replacement struct {
	Offset int64
	First  *int64 // its own First, if it was carried over
	Parked string // why the broker refuses it
	Copy   string // of a copy of a fire: the op of the fire

	Admitted *Admission // of a unique job: it has its key
}

// maxBarrier is above the size of any barrier, in bytes.
const maxBarrier = 1024

// ReadEntry reads a record of an entry stream. trusted reports whether Millrace's own user wrote
// it. A barrier that another user wrote is read as an entry, and is none.
func ReadEntry(r *Record, trusted bool) (e EntryRecord) {
	_, replaces := r.Headers[HeaderReplaces]
	switch {
	case r.Fault != "":
		e.Fault = r.Fault
	case trusted:
		e.readHeaders(r, replaces)
	case replaces:
		e.Fault = "it replaces another entry, which only Millrace's own user may do: " + r.From()
	}
	if e.Fault != "" || e.Barrier != nil || e.Probe != nil {
		return e
	}
	e.Provenance = ProvenanceOf(r.Headers, r.UserID, trusted)
	var err error
	if e.Entry, err = EntryOf(r); err != nil {
		e.Fault = err.Error()
		return e
	}
	if e.Stream == Gated {
		e.readGated(r)
	}
	if a := e.Announcement; a != nil {
		a.JIDTag = JIDTag(e.JID)
		if enqueues(a.What) {
			a.JID = e.JID
		}
	}
	return e
}

// readGated reads when a job of jobs.gated is due: a fire that found no queue was due before.
func (e *EntryRecord) readGated(r *Record) {
	old := e.Replaces
	switch {
	case old != nil && old.Admitted != nil:
		e.At = old.Admitted.Due
	case !e.Job.GateAt.IsZero() && e.Dispatch == nil && (old == nil || old.Copy == ""):
		e.At = e.Job.GateAt
	}
	if e.Job.Unique != nil {
		e.ReplyTo, e.CorrelationID = r.ReplyTo, r.CorrelationID
	}
}

func (e *EntryRecord) readHeaders(r *Record, replaces bool) {
	if e.Barrier = barrierOf(r.Body); e.Barrier != nil {
		return
	}
	if p, probe := ProbeOf(r.Headers); probe && (r.Stream == Gated || r.Stream == Retries) {
		e.Probe = &p
		return
	}
	d, dispatched := DispatchOf(r.Headers)
	what, _ := r.Headers[HeaderAnnounces].(string)
	isNew := enqueues(what) && !replaces
	e.Ours = replaces || isNew || dispatched && d.Burial()
	if dispatched && (e.Ours || r.Stream == Gated) {
		e.Dispatch = &d
	}
	e.Epoch = HeaderInt(r.Headers, HeaderEpoch)
	if replaces {
		e.Replaces = replacementOf(r.Headers)
	}
	if a, ok := AnnouncementOf(r); ok && (replaces || isNew) {
		e.Announcement = &a
	}
	_, dropped := r.Headers[HeaderDropped]
	_, lease := r.Headers[HeaderLease]
	e.Dropped, e.Lease = dropped && r.Stream == DeadJobs, lease && r.Stream == ScheduledJobs
	if e.Lease || r.Stream != Gated { // a copy in jobs.gated has the slot of its fire
		e.Slot, _ = r.Headers[HeaderSlot].(string)
	}
}

func replacementOf(headers map[string]any) *Replacement {
	r := &Replacement{Offset: HeaderInt(headers, HeaderReplaces)}
	if first, carried := headers[HeaderFirst].(int64); carried {
		r.First = &first
	}
	r.Parked, _ = headers[HeaderParked].(string)
	r.Copy, _ = headers[HeaderCopy].(string)
	r.Admitted = parseAdmission(headers[HeaderAdmitted])
	return r
}

// barrierOf returns the barrier in a record, nil if there is none.
func barrierOf(body []byte) *Barrier {
	if len(body) >= maxBarrier || !gjson.ValidBytes(body) || JournalType(body) != TypeBarrier {
		return nil
	}
	b := &Barrier{Epoch: gjson.GetBytes(body, "epoch").Int(), Read: math.MaxInt64}
	if read := gjson.GetBytes(body, "read"); read.Exists() {
		b.Read = read.Int()
	}
	return b
}

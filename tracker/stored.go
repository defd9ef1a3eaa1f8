package tracker

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Stored is an entry as the view keeps it.
type Stored struct {
	Stream  string
	Offset  int64
	First   int64 // the first offset of all, where this entry stands for an older one
	At      time.Time
	Attempt int
	JID     string
	Queue   string
	Class   string
	Burial  wire.Dispatch // see IsCopy and Origin
	Parked  string        // why the broker cannot take it; empty: it can
	Dropped bool          // a dead job that a queue dropped
	Leased  string        // of a lease: the jid of the job; the entry's own jid is the id of the lease
	wire.Provenance
	gating
	content
}

// gate gates an entry if there is a rule. Leases, dead jobs and delayed messages are not delivered
// to the queue. The key of a record that the view does not keep is not read.
func (s *Stored) gate(r *gateRule) *Stored {
	if s == nil || r == nil || s.Leased != "" || s.Stream == wire.DeadJobs || s.Class == wire.MessageClass {
		return s
	}
	if s.Gated = true; s.LimitKey == "" && s.Raw != nil {
		s.LimitKey = r.keyOf(s.Raw[s.jobAt:s.jobEnd])
	}
	return s
}

// apply gates an entry if its queue is governed.
func (r *gateRules) apply(s *Stored) *Stored {
	if s == nil {
		return nil
	}
	return s.gate(r.of(s.Queue))
}

// HoldsSlot reports whether the job holds its key until it has ended. Then each fire takes a slot,
// so that its end is known.
func (s *Stored) HoldsSlot() bool {
	return s.Unique != "" && !s.Waiting && s.Stream != wire.ScheduledJobs
}

// holdsKey reports whether an entry holds its key.
func (s *Stored) holdsKey() bool {
	return s.Unique != "" && !s.Undecided && (s.Stream == wire.Gated || s.Stream == wire.Retries && !s.Waiting)
}

// HoldsKeyOf makes an entry of which only the journal has the job hold its key as it would if the
// view had it.
func (s *Stored) HoldsKeyOf(job *wire.Job) {
	s.Unique, s.Waiting = slotKey(s.Stream, job), false
}

// Origin returns the name of the burial that made a dead job. No burial has the number 0.
func (s *Stored) Origin() wire.Through {
	return wire.Through{Epoch: s.Burial.Epoch, Through: s.Burial.Seq}
}

// IsCopy reports whether an entry is a fire that found no queue. Burial is that fire; of a copy
// that was carried over, it has the op alone.
func (s *Stored) IsCopy() bool { return s.Stream == wire.Gated && s.Burial.Op != "" }

// tag returns the name of the jid in the journal.
func (s *Stored) tag() string { return wire.JIDTag(s.JID) }

func (s *Stored) id() entryID { return entryID{codes[s.Stream], s.Offset} }

// Group returns the group of a gated entry.
func (s *Stored) Group() wire.Group {
	return wire.Group{Queue: s.Queue, Class: s.Class, Key: s.LimitKey}
}

// leases stands for a stream in lists, counts and the index of jids. A lease is an entry of the
// scheduled jobs, and is not shown as one.
const leases code = 5

// listed returns the id of an entry in lists.
func (s *Stored) listed() entryID {
	id := s.id()
	if s.Leased != "" {
		id.stream = leases
	}
	return id
}

// fires reports whether an entry is fired when it is due.
func fires(s *Stored) bool { return s.Stream != wire.DeadJobs && s.Parked == "" }

// Entry parses the record of an entry. raw is the record if the view does not keep it.
func (s *Stored) Entry(raw []byte) (wire.Entry, error) {
	e, err := func() (wire.Entry, error) {
		if s.Raw != nil {
			return wire.RereadEntry(s.Stream, s.Offset, s.Raw)
		}
		return wire.ParseEntry(s.Stream, s.Offset, raw)
	}()
	if s.Stream == wire.Gated {
		e.At = s.At
	}
	return e, err
}

// Fireable returns what is needed to fire the entry, which is all but its error and the job's tags
// and retries. ok is false if the view does not keep the record.
func (s *Stored) Fireable() (e wire.Entry, ok bool) {
	if s.Raw == nil {
		return e, false
	}
	job := wire.Job{JID: cmp.Or(s.jobJID, s.JID), Class: s.Class, Queue: s.Queue, Priority: s.priority, ExpiresAt: s.expires, Dead: !s.discards,
		Raw: s.Raw[s.jobAt:s.jobEnd:s.jobEnd]}
	e = wire.Entry{Stream: s.Stream, Offset: s.Offset, JID: s.JID, At: s.At, Attempt: s.Attempt, Job: job, Raw: s.Raw, JobAt: s.jobAt, Naming: wire.Named}
	if s.nameless {
		e.Naming = wire.Nameless
	}
	return e, true
}

// Exchange returns the exchange to which a delayed message goes. known is false for other jobs, for
// records that the view does not keep, and for messages without the name of an exchange.
func (s *Stored) Exchange() (name string, known bool) {
	if s.Class != wire.MessageClass || s.Raw == nil {
		return "", false
	}
	exchange := arg(s.Stream, s.Raw, "0", "exchange")
	name = wire.TextOf(exchange)
	return name, exchange.Type == gjson.String && len(name) <= wire.MaxShort
}

// arg returns the value at a path in the arguments of an entry's job.
func arg(stream string, record []byte, path ...string) gjson.Result {
	at := gjson.ParseBytes(record)
	if stream != wire.Gated {
		at = wire.Within(at, "job")
	}
	at = wire.Within(at, "args")
	for _, step := range path {
		at = wire.Within(at, step)
	}
	return at
}

// newStored returns an entry as it was read from its stream.
func newStored(e *wire.EntryRecord) Stored {
	s := Stored{Stream: e.Stream, Offset: e.Offset, First: e.Offset, At: e.At, Attempt: e.Attempt, JID: e.JID, Queue: e.Job.Queue,
		Class: e.Job.Class, Dropped: e.Dropped, content: newContent(&e.Entry), Provenance: e.Provenance, gating: gatingOf(e)}
	if s.Class != wire.MessageClass {
		s.Sender = ""
	}
	if e.Lease {
		s.Leased = e.Job.JID
	}
	if old := e.Replaces; old != nil {
		s.Parked, s.Burial.Op = old.Parked, old.Copy
		if old.First != nil {
			s.First = *old.First
		}
	}
	if e.Dispatch != nil {
		s.Burial = *e.Dispatch
		s.Burial.Confirmed = 0
	}
	return s
}

func (s *Stored) encode() []byte {
	b := make([]byte, 0, 64+len(s.JID)+len(s.Queue)+len(s.Class)+len(s.Raw))
	for _, n := range []int64{s.First, s.At.UnixMicro(), int64(s.Attempt), s.flags()} {
		b = binary.AppendVarint(b, n)
	}
	for _, t := range []string{s.JID, s.Queue, s.Class, s.Parked, s.Trace, s.Sender, s.Leased, s.own.key, s.Slot} {
		b = table.AppendText(b, t)
	}
	return s.content.append(s.uniqueness.append(appendBurial(b, &s.Burial)))
}

// What is true of an entry is one number.
const (
	flagDropped = 1 << iota
	flagDiscards
	flagNameless
	flagExpires
	flagGated
	flagUnique
	flagUndecided
	flagWaiting
	flagReplace
)

func (s *Stored) flags() int64 {
	return flag(s.Dropped, flagDropped) | flag(s.discards, flagDiscards) | flag(s.nameless, flagNameless) | flag(!s.expires.IsZero(), flagExpires) | flag(s.own.gated, flagGated) |
		flag(s.Unique != "", flagUnique) | flag(s.Undecided, flagUndecided) | flag(s.Waiting, flagWaiting) | flag(s.Replace, flagReplace)
}

func (s *Stored) setFlags(flags int64) (expires bool) {
	s.own.gated, s.Undecided = flags&flagGated != 0, flags&flagUndecided != 0
	s.Waiting, s.Replace = flags&flagWaiting != 0, flags&flagReplace != 0
	s.Dropped, s.discards, s.nameless = flags&flagDropped != 0, flags&flagDiscards != 0, flags&flagNameless != 0
	return flags&flagExpires != 0
}

func flag(set bool, value int64) int64 {
	if set {
		return value
	}
	return 0
}

func appendBurial(b []byte, d *wire.Dispatch) []byte {
	b = table.AppendText(b, d.Op)
	if d.Op == "" {
		return b
	}
	for _, n := range []int64{int64(codes[d.Stream]), d.Offset, d.Epoch, d.Seq} {
		b = binary.AppendVarint(b, n)
	}
	for _, t := range []string{d.JIDTag, d.Actor, d.Command, d.Operation} {
		b = table.AppendText(b, t)
	}
	return b
}

func decodeBurial(d *table.Decoder) (b wire.Dispatch) {
	if b.Op = d.Text(); b.Op == "" {
		return b
	}
	b.Stream, b.Offset, b.Epoch, b.Seq = names[code(d.Int())], d.Int(), d.Int(), d.Int()
	b.JIDTag, b.Actor, b.Command, b.Operation = d.Text(), d.Text(), d.Text(), d.Text()
	return b
}

func decodeStored(id entryID, b []byte) (*Stored, error) {
	s := &Stored{Stream: id.name(), Offset: id.offset}
	d := table.Decoder{B: b}
	s.First, s.At = d.Int(), time.UnixMicro(d.Int()).UTC()
	s.Attempt = int(d.Int())
	flags := d.Int()
	expires := s.setFlags(flags)
	for _, t := range []*string{&s.JID, &s.Queue, &s.Class, &s.Parked, &s.Trace, &s.Sender, &s.Leased, &s.own.key, &s.Slot} {
		*t = d.Text()
	}
	s.set(s.own)
	s.Burial = decodeBurial(&d)
	if flags&flagUnique != 0 {
		s.uniqueness.decode(&d)
	}
	s.content.decode(&d, expires)
	if d.Bad {
		return nil, fmt.Errorf("tracker: stored entry %s@%d is damaged", s.Stream, s.Offset)
	}
	return s, nil
}

// storedAt returns the entry with an id, nil if there is none.
func storedAt(r view.Reader, id entryID) (*Stored, error) {
	raw, ok, err := r.Get(keyEntry(id))
	if err != nil || !ok {
		return nil, err
	}
	return decodeStored(id, raw)
}

// Dead jobs are of two kinds, each with a bound of its own. A queue may drop any number of jobs in
// an instant, and they must not push out those that failed or that a user killed.

func keyDead(s *Stored) []byte {
	return table.AppendInt(table.AppendInt(keyDeads(s.Dropped), s.At.UnixMicro()), s.Offset)
}

func keyDeads(dropped bool) []byte {
	if dropped {
		return []byte{tableDead, 1}
	}
	return []byte{tableDead, 0}
}

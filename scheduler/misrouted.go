package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// misroutedScan collects what may be misrouted, in the order of the journal.
type misroutedScan struct {
	state  tracker.State
	newest int64 // the epoch that led at the record that was read last
	found  []misrouted
	at     map[ledger.EntryID]int
}

// misrouted is a fire or burial that may not have arrived although it was confirmed. The view may
// have forgotten its entry.
type misrouted struct {
	at      ledger.EntryID
	headers wire.Dispatch
	body    []byte
	from    wire.Provenance
}

// reentry appends entries for what may be misrouted.
type reentry struct {
	base
	left     []misrouted
	entering int     // how many entries are on their way
	at       float64 // when the misrouting was noticed
}

// find lists what may be misrouted. What is in doubt is marked as returned instead.
func (r *reentry) find(open []tracker.Doubt, copied map[dispatch]bool, unrouted *unrouted) error {
	a := misroutedScan{state: r.entries.State(), at: map[ledger.EntryID]int{}}
	from := max(0, a.state.RoutedTo) // a probe or an opened record: it says which epoch led
	err := r.setup.journal(from, r.ledger.Epoch(), func(record *wire.Record) error {
		if r.entries.Trusts(record) {
			a.read(record)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.dropUndone(r.entries); err != nil {
		return err
	}
	inDoubt := map[ledger.EntryID]int{}
	for i, d := range open {
		inDoubt[entryOf(&d)] = i
	}
	for _, i := range slices.Sorted(maps.Values(a.at)) {
		s := a.found[i]
		if i, is := inDoubt[s.at]; is {
			open[i].Returned = true
			continue
		}
		if copied[dispatchOf(s.headers)] {
			continue // it arrived in jobs.gated
		}
		pending, err := r.entries.Get(s.at.Stream, s.at.Offset)
		if err != nil {
			return err
		}
		if pending == nil { // a pending entry fires by itself
			unrouted.needsNoCopy(dispatchOf(s.headers))
			r.left = append(r.left, s)
		}
	}
	r.at = a.state.MisroutedTime
	return nil
}

// read takes in one record of the journal.
func (a *misroutedScan) read(r *wire.Record) {
	if p, is := wire.ProbeOf(r.Headers); is {
		a.newest = max(a.newest, p.Epoch)
		return
	}
	if d, fired := wire.DispatchOf(r.Headers); fired {
		a.newest = max(a.newest, d.Epoch)
		if d.Epoch == a.newest || !d.Burial() { // a late burial is void
			a.add(r, d)
		}
		return
	}
	j, err := wire.ParseJournal(r.Body)
	if err != nil {
		return
	}
	if j.Type == wire.TypeOpened {
		a.newest = r.Offset
	}
	switch {
	case j.Type == wire.TypeReturned,
		j.Epoch >= a.newest && (j.Type == wire.TypeUnburied || j.Type == wire.TypeUndone):
		delete(a.at, ledger.ID(j.Stream, j.Offset)) // it is pending again, or was acted upon since
	}
}

// dropUndone drops the burials of kills that were undone and are not journaled yet. Their entries
// are pending again.
func (a *misroutedScan) dropUndone(entries *tracker.Reader) error {
	announced, err := entries.Announced()
	for _, n := range announced {
		if n.What == wire.TypeUndone {
			delete(a.at, ledger.ID(n.Stream, n.Replaces))
		}
	}
	return err
}

func (a *misroutedScan) add(r *wire.Record, d wire.Dispatch) {
	at := ledger.ID(d.Stream, d.Offset)
	if d.Stream == "" {
		at.Offset = r.Offset
	}
	delete(a.at, at)
	if d.Burial() {
		buried := a.state.Barriers[wire.DeadJobs].Before
		if d.Epoch < buried.Epoch || d.Epoch == buried.Epoch && d.Seq <= buried.Through {
			return // it arrived: later burials did
		}
	} else if r.Offset > a.state.MisroutedAt {
		return // the routing was intact
	}
	a.at[at] = len(a.found)
	a.found = append(a.found, misrouted{at, d, r.Body, wire.ProvenanceOf(r.Headers, r.UserID, true)})
}

// repeat appends an entry for what may be misrouted: a due entry for a job, a dead job for a dead
// job. If two leaders do so, both write the same, which is recognised until the first has fired.
func (r *reentry) repeat(s *misrouted, retried map[dispatch]bool) error {
	if s.headers.Burial() {
		return r.repeatBurial(s, retried)
	}
	job, err := wire.ParseJob(s.body)
	if err != nil {
		return nil //nolint:nilerr // it was not readable when it was fired either: it is no job
	}
	jid := cmp.Or(job.JID, s.headers.JIDTag)
	return r.enter(wire.ScheduledJobs, jid, wire.ScheduledJob(jid, r.at, s.body), s)
}

func (r *reentry) repeatBurial(s *misrouted, retried map[dispatch]bool) error {
	e, err := wire.ParseEntry(wire.DeadJobs, 0, s.body)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	origin := wire.Through{Epoch: s.headers.Epoch, Through: s.headers.Seq}
	if retried[dispatchOf(s.headers)] {
		return nil
	}
	dead, err := r.amongDead(e.JID, func(d *tracker.Stored) bool { // it arrived, or was entered before
		return d.Origin() == origin || d.At.Equal(e.At)
	})
	if err != nil || dead != nil {
		return err
	}
	return r.enter(wire.DeadJobs, e.JID, s.body, s)
}

// enter appends an entry that repeats what was done to another.
func (r *reentry) enter(stream, jid string, record []byte, s *misrouted) error {
	headers := map[string]any{wire.HeaderStream: s.at.Stream, wire.HeaderOffset: s.at.Offset}
	s.from.AddTo(headers)
	if s.headers.Slot != "" { // the entry takes one of its own
		headers[wire.HeaderSlot] = s.headers.Slot
	}
	r.entering++
	return r.ledger.Send(&ledger.Publish{Plain: true, Confirmed: func() { r.entering-- }, Build: func(int64, int64) wire.Message {
		return wire.Carry(stream, jid, record, headers)
	}})
}

// step appends entries, as far as there is room, and reports whether all are confirmed.
func (r *reentry) step(retried map[dispatch]bool) (done bool, err error) {
	for len(r.left) > 0 && r.ledger.Room() {
		s := r.left[0]
		r.left = r.left[1:]
		if err := r.repeat(&s, retried); err != nil {
			return false, err
		}
	}
	return len(r.left) == 0 && r.entering == 0, nil
}

package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// misroutedScan is what may have gone astray, by the journal's order.
type misroutedScan struct {
	state  tracker.State
	newest int64 // the epoch that led where the journal was read to
	found  []misrouted
	at     map[ledger.EntryID]int
}

// misrouted is a fire or burial that may not have arrived although it was confirmed: a view may have forgotten its entry.
type misrouted struct {
	at      ledger.EntryID
	headers wire.Deed
	body    []byte
}

func (s *misrouted) dispatch() dispatch {
	return dispatch{wire.Through{Epoch: s.headers.Epoch, Through: s.headers.Seq}, s.headers.JIDTag}
}

// reentry enters again what may have gone astray.
type reentry struct {
	base
	left     []misrouted
	entering int     // of them, what is on its way
	at       float64 // when it was noticed that they may have gone astray
}

// find lists what may have gone astray. What is doubtful anyway is doubted all the more.
func (r *reentry) find(open []tracker.Doubt, copied map[dispatch]bool) error {
	a := misroutedScan{state: r.entries.State(), at: map[ledger.EntryID]int{}}
	from := max(0, a.state.RoutedTo) // a probe or the beginning of an epoch: it says who led
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
	doubtful := map[ledger.EntryID]int{}
	for i, d := range open {
		doubtful[entryOf(&d)] = i
	}
	for _, i := range slices.Sorted(maps.Values(a.at)) {
		s := a.found[i]
		if i, is := doubtful[s.at]; is {
			open[i].Returned = true
			continue
		}
		if copied[s.dispatch()] {
			continue // it arrived in jobs.gated
		}
		pending, err := r.entries.Get(s.at.Stream, s.at.Offset)
		if err != nil {
			return err
		}
		if pending == nil { // what came back fires by itself
			r.left = append(r.left, s)
		}
	}
	r.at = a.state.AstrayTime
	return nil
}

// read takes in one record of the journal.
func (a *misroutedScan) read(r *wire.Record) {
	if p, is := wire.ProbeOf(r.Headers); is {
		a.newest = max(a.newest, p.Epoch)
		return
	}
	if d, fired := wire.DeedOf(r.Headers); fired {
		if a.newest = max(a.newest, d.Epoch); d.Epoch == a.newest || !d.Burial() { // a late burial is void
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
		delete(a.at, ledger.ID(j.Stream, j.Offset)) // it is pending again, or something else was done to it since
	}
}

// dropUndone drops the burials of kills that were undone, of which the journal has yet to tell: their entries are pending again.
func (a *misroutedScan) dropUndone(entries *tracker.Entries) error {
	announced, err := entries.Announced()
	for _, n := range announced {
		if n.What == wire.TypeUndone {
			delete(a.at, ledger.ID(n.Stream, n.Replaces))
		}
	}
	return err
}

func (a *misroutedScan) add(r *wire.Record, d wire.Deed) {
	at := ledger.ID(d.Stream, d.Offset)
	if d.Stream == "" {
		at.Offset = r.Offset
	}
	delete(a.at, at)
	if d.Burial() {
		buried := a.state.Barriers[wire.DeadJobs].Before
		if d.Epoch < buried.Epoch || d.Epoch == buried.Epoch && d.Seq <= buried.Through {
			return // it arrived; who buried since had seen to what is older, and it may have been acted upon
		}
	} else if r.Offset > a.state.AstrayAt {
		return // the way stood
	}
	a.at[at] = len(a.found)
	a.found = append(a.found, misrouted{at, d, r.Body})
}

// repeat enters again what may have gone astray: a job as due, in a new entry, a dead job among the dead. Two leaders who do that write the
// same, which is noticed as long as the first has not fired.
func (r *reentry) repeat(s *misrouted, retried map[dispatch]bool) error {
	if s.headers.Burial() {
		return r.repeatBurial(s, retried)
	}
	job, err := wire.ParseJob(s.body)
	if err != nil {
		return nil //nolint:nilerr // it was read when it was fired; a body that cannot be read now was no job then either
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
	if retried[s.dispatch()] {
		return nil
	}
	dead, err := r.amongDead(e.JID, func(d *tracker.Stored) bool {
		return d.Origin() == origin || d.At.Equal(e.At) // it arrived, or another leader entered it, and died before it could say so
	})
	if err != nil || dead != nil {
		return err
	}
	return r.enter(wire.DeadJobs, e.JID, s.body, s)
}

// enter appends an entry that repeats what was done to another.
func (r *reentry) enter(stream, jid string, record []byte, s *misrouted) error {
	headers := map[string]any{wire.HeaderStream: s.at.Stream, wire.HeaderOffset: s.at.Offset}
	r.entering++
	return r.ledger.Send(&ledger.Publish{Plain: true, Confirmed: func() { r.entering-- }, Build: func(int64, int64) wire.Message {
		return wire.Carry(stream, jid, record, headers)
	}})
}

// step enters what may have gone astray, as far as there is room, and tells whether all of it is confirmed.
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

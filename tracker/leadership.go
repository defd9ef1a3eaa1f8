package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// leadership is the State as the fold has it in the middle of a batch.
type leadership struct {
	state   State
	changed bool // since it was written
	shown   *Shown
}

var keyState = []byte{table.Meta}

func loadState(r view.Reader) (State, error) {
	s := newState()
	raw, ok, err := r.Get(keyState)
	if err != nil || !ok {
		return s, err
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("tracker: state is damaged: %w", err)
	}
	return s, nil
}

func (l *leadership) load(r view.Reader) (err error) {
	if l.state, err = loadState(r); err != nil {
		return err
	}
	l.changed = false
	l.shown.show(l.state.clone())
	return nil
}

// save writes the state if it changed. It is shown when the batch is written.
func (l *leadership) save(tx *view.Tx) error {
	if !l.changed {
		return nil
	}
	l.changed = false
	shown := l.state.clone()
	tx.AfterCommit(func() { l.shown.show(shown) })
	raw, err := json.Marshal(l.state)
	if err != nil {
		return fmt.Errorf("tracker: save state: %w", err)
	}
	return tx.Set(keyState, raw)
}

// update changes the state.
func (l *leadership) update(fn func(*State)) {
	fn(&l.state)
	l.changed = true
}

// peek returns the state, which only update may change.
func (l *leadership) peek() *State { return &l.state }

// begins notes the first record of an entry stream.
func (l *leadership) begins(stream string, offset int64) {
	if _, begun := l.state.First[stream]; !begun {
		l.update(func(s *State) { s.First[stream] = offset })
	}
}

// readProbe notes a probe that came through jobs.gated, or one of the retries.
func (l *leadership) readProbe(stream string, p *wire.Probe) {
	if p.Number == 0 {
		return
	}
	l.update(func(s *State) {
		if number := (wire.Through{Epoch: p.Epoch, Through: p.Number}); stream == wire.Gated {
			s.GatedProbe = number
		} else {
			s.RetriesProbe = number
		}
	})
}

// voids reports whether a record of a leader is void: its stream has the barrier of another.
func (l *leadership) voids(stream string, epoch int64) bool {
	b, seen := l.state.Barriers[stream]
	return seen && b.voids(epoch)
}

// void counts a record that has no effect.
func (l *leadership) void(stream string) { l.update(func(s *State) { s.Void[stream]++ }) }

// settled reports whether low water has passed an offset of a stream.
func (l *leadership) settled(stream string, offset int64) bool {
	low, moved := l.state.LowWater[stream]
	return moved && offset < low
}

// opened begins an epoch. Its leader may not have read all of the journal when it wrote the record:
// the record may add to the state, and takes nothing back.
func (s *State) opened(offset int64, r *wire.JournalRecord) {
	if s.Led {
		s.LastLed, s.Led = s.Epoch, false
	}
	if s.Format2 < 0 && r.Format >= 2 {
		s.Format2 = offset
	}
	s.Epoch, s.Identity, s.OpenedAt, s.FoldedSeq, s.Confirmed, s.Probe = offset, r.Identity, r.At, 0, 0, 0
	s.ProbeQueue, s.Skipped, s.Unread, s.Ended = r.Probe, nil, false, false
	s.routed(r.RoutedTo)
	s.RoutedTo = min(s.RoutedTo, offset) // its leader may have known a journal that had records behind this
	if s.BegunAt == 0 {
		s.BegunAt = r.At
	}
	s.Needs = max(s.Needs, r.Needs)
	s.repeatedWitness(r)
	if len(r.Held) > 0 {
		s.Why = cmp.Or(r.Reason, s.Why)
	}
	all := offset > s.LostAt
	for _, stream := range wire.EntryStreamsOf(r.Format) {
		all = all && r.Held[stream] == wire.Everything
	}
	s.Lost = s.Lost || r.ReadTo > offset
	s.HeldAll = s.HeldAll && !s.Lost || all
	s.Lost = s.Lost && !all
	for stream, upTo := range r.Held {
		if known, held := s.Held[stream]; !held || known < upTo {
			s.Held[stream] = upTo
		}
	}
}

// maxSkipped bounds how many ranges of numbers are remembered: more than a leader has open.
const maxSkipped = 4096

// numbered notes a numbered record of the journal.
func (s *State) numbered(epoch, seq int64) {
	if next := s.FoldedSeq + 1; seq > next && !s.Unread {
		if len(s.Skipped) >= maxSkipped {
			s.Skipped = s.Skipped[1:]
		}
		s.Skipped = append(s.Skipped, wire.Range{First: next, Last: seq - 1})
	}
	s.FoldedSeq, s.Unread = max(s.FoldedSeq, seq), false
	if epoch == s.JournaledTo.Epoch { // a later one has yet to settle what this one left
		s.JournaledTo.Through = max(s.JournaledTo.Through, seq)
	}
}

// settledBefore notes that an epoch has journaled what earlier ones had left.
func (s *State) settledBefore(epoch int64) {
	if now := (wire.Through{Epoch: epoch, Through: s.FoldedSeq}); epoch == s.Epoch && now.Compare(s.JournaledTo) > 0 {
		s.JournaledTo = now
	}
}

// witnessed notes the witness of a numbered record. If it is the same as before, it still proves
// the fires since then.
func (s *State) witnessed(r *wire.JournalRecord, seq int64) {
	if standing := r.StandingWitness(); standing != s.Witness {
		s.Witness, s.WitnessFrom = standing, wire.Through{Epoch: r.Epoch, Through: seq}
	}
}

// repeatedWitness notes the witness that a record repeats, if the first record was not read.
func (s *State) repeatedWitness(r *wire.JournalRecord) {
	if s.Witness != "" {
		return
	}
	s.Witness = r.StandingWitness()
	if r.WitnessFrom != nil {
		s.WitnessFrom = *r.WitnessFrom
	}
}

// The routing from jobs.fire to the queues may break. Then the broker confirms what reaches no
// queue. The leader sends probes the same way, and journals how far it has seen them arrive.

// routed notes up to which offset of the journal fires reached their queues. The number of a leader
// that had not read all of the journal may be too low.
func (s *State) routed(to *int64) {
	if to != nil && *to > s.RoutedTo {
		s.RoutedTo = *to
	}
}

// foundMisrouted notes that earlier fires may have reached no queue.
func (s *State) foundMisrouted(at int64, when float64) { s.MisroutedAt, s.MisroutedTime = at, when }

// nothingMisrouted notes that all these fires have been repeated.
func (s *State) nothingMisrouted() {
	s.RoutedTo, s.MisroutedAt = max(s.RoutedTo, s.MisroutedAt), -1
}

// buried notes that a burial reached its stream. Without a barrier before it there is nothing to
// compare its number with. Retention may have taken the barrier of its epoch.
func (s *State) buried(at wire.Through) {
	b, seen := s.Barriers[wire.DeadJobs]
	switch {
	case seen && at.Epoch == b.Epoch:
		b.Buried = max(b.Buried, at.Through)
	case seen && b.Overtaken && at.Compare(b.Before) > 0:
		b.Before = at
	default:
		return
	}
	s.Barriers[wire.DeadJobs] = b
}

// readBarrier notes a leader's barrier. One of an older epoch is void, unless its leader had read
// the newer one: then the journal was lost in between, and epochs have begun again. A leader that
// could not read its barrier may have written it again.
func (s *State) readBarrier(stream string, offset int64, b *wire.Barrier) {
	before, seen := s.Barriers[stream]
	if seen && b.Epoch < before.Epoch && b.Read < before.Offset {
		s.Void[stream]++
		return
	}
	if seen && b.Epoch == before.Epoch && b.Read < before.Offset {
		return
	}
	next := Barrier{Epoch: b.Epoch, Offset: offset}
	if seen {
		next = before.follow(b.Epoch, offset)
	} else {
		s.FirstBarrier[stream] = offset
	}
	// Retention may have taken newer barriers that its leader did not know.
	first := s.First[stream]
	next.Overtaken = (!seen && first > 1 || before.Overtaken) && b.Read < first-1
	s.Barriers[stream] = next
}

// age is what is taken from the epochs of a journal that is gone. It brings them below all that a
// journal can have, in their old order.
const age = 1 << 40

// withoutJournal returns the state of a view that has read nothing of the journal. What is held
// stays held, and the witness is as good as it was. Low water may be that of a stream which is gone
// too. Barriers prove that there was a leader, under epochs that none will have.
func (s State) withoutJournal() State {
	next := newState()
	next.Journals, next.Lost = s.Journals+1, s.Lost || s.Epoch >= 0
	next.Held, next.Why, next.Witness, next.First = s.Held, s.Why, s.Witness, s.First
	next.Rejected, next.Void, next.Duplicates, next.Fired, next.Buried = s.Rejected, s.Void, s.Duplicates, s.Fired, s.Buried
	next.WitnessFrom = wire.Through{Epoch: s.WitnessFrom.Epoch - age, Through: s.WitnessFrom.Through}
	next.JournaledTo = wire.Through{Epoch: s.JournaledTo.Epoch - age, Through: s.JournaledTo.Through}
	next.Barriers, next.FirstBarrier = maps.Clone(s.Barriers), s.FirstBarrier
	for stream, b := range next.Barriers {
		b.Epoch -= age
		b.Before.Epoch -= age
		b.Earlier = slices.Clone(b.Earlier)
		for i := range b.Earlier {
			b.Earlier[i] -= age
		}
		next.Barriers[stream] = b
	}
	return next
}

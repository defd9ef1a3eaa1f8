package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/gate"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// limits decide which gated jobs may fire. What they know of slots is what the view has folded, and
// what this epoch has fired since. So an end that is read late frees its slot late, and never
// early.
type limits struct {
	base
	gate      *gate.Gate[lookups]
	version   int64 // of the definitions
	swept     time.Time
	lookAtAll bool // every group is to be looked at
	ahead     ahead
}

const sweepEvery = time.Minute

// open takes in what the view has, before the epoch fires anything.
func (l *limits) open(now time.Time) error {
	if l.gate != nil {
		return nil
	}
	l.entries.FollowGroups(true)
	rates, err := l.entries.Limits.Rates()
	if err != nil {
		return err
	}
	l.gate, l.swept = gate.New[lookups](rates), now
	l.ahead.open(now, l.gate)
	l.define(l.entries.Limits.LimitsVersion())
	err = l.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		l.gate.Hold(ledger.ID(h.Stream, h.Offset), h.Group)
		return true
	})
	if err != nil {
		return err
	}
	return l.lookAll()
}

// lookAll has every group looked at.
func (l *limits) lookAll() error {
	l.lookAtAll = false
	return l.entries.Groups(func(g wire.Group, first tracker.DueKey) bool {
		l.look(g, first)
		return true
	})
}

// look has a group looked at when an entry of it is due.
func (l *limits) look(g wire.Group, key tracker.DueKey) { l.gate.Look(g, key.At).State.from(key) }

// define takes in the definitions.
func (l *limits) define(version int64) {
	l.version = version
	all := map[string]wire.Limit{}
	for _, d := range l.entries.Limits.Limits() {
		if limit, err := d.Definition(); err == nil {
			all[d.Name] = limit
		}
	}
	l.gate.Define(all)
}

// step takes in what the view has folded.
func (l *limits) step(now time.Time) error {
	if version := l.entries.Limits.LimitsVersion(); version != l.version {
		l.define(version)
	}
	for _, c := range l.entries.TakeSlots() {
		if at := ledger.ID(c.Stream, c.Offset); c.Held {
			l.gate.Hold(at, c.Group)
		} else {
			l.gate.Free(now, at)
		}
	}
	groups, all := l.entries.TakeGroups()
	for _, g := range slices.SortedFunc(maps.Keys(groups), wire.Group.Compare) {
		l.look(g, groups[g])
	}
	if now.Sub(l.swept) >= sweepEvery || now.Before(l.swept) {
		l.swept = now
		l.gate.Sweep(now)
	}
	if all || l.lookAtAll {
		if err := l.lookAll(); err != nil {
			return err
		}
	}
	l.ahead.step(now)
	return nil
}

// counted is how limits count a fire.
type counted struct {
	entry *tracker.Stored
	slot  bool
	claim bool
	rates string
}

// take counts the job of an entry that is fired.
func (l *limits) take(now time.Time, s *tracker.Stored) counted {
	c := counted{entry: s}
	if !s.Gated && !s.HoldsSlot() {
		return c
	}
	at := ledger.ID(s.Stream, s.Offset)
	if s.Gated {
		var used []wire.RateUse
		c.slot, used = l.gate.Take(now, at, s.Group())
		c.rates = wire.RatesHeader(used)
	}
	if s.HoldsSlot() && !c.slot {
		l.gate.Hold(at, s.Group())
		c.slot = true
	}
	c.claim = c.slot && !l.setup.certain(s.Queue)
	return c
}

// addTo adds it to the headers of the fire. A lease that has run out keeps the slot of its job, and
// the worker must ask whether the job has ended meanwhile.
func (c counted) addTo(d wire.Dispatch) wire.Dispatch {
	switch {
	case c.slot:
		d.Slot, d.Claim = wire.SlotOf(&d).String(), c.claim
	case c.entry.Slot != "":
		d.Slot, d.Claim = c.entry.Slot, true
	}
	d.Rates = c.rates
	return d
}

// setBack has rates wait no longer because the clock was set back.
func (l *limits) setBack() {
	if l.gate != nil {
		l.define(l.version)
	}
}

// free frees the slot of a fire that did not arrive.
func (l *limits) free(now time.Time, at ledger.EntryID) { l.gate.Free(now, at) }

// command frees a slot because an operator says so.
func (l *limits) command(now time.Time, r request) error {
	slot, err := wire.ParseSlot(r.cmd.Slot)
	if err != nil {
		return r.reply(badRequest(err.Error()))
	}
	h, err := l.entries.Slots.HeldSlot(slot.Stream, slot.Offset, slot.JIDTag)
	if err != nil {
		return err
	}
	if h == nil {
		return r.reply(notFound("no job holds this slot"))
	}
	h.Why = "asked"
	l.counters.SlotsFreed.Asked++
	record := wire.JournalRecord{Type: wire.TypeFreed, Slots: []wire.HeldSlot{*h}, Actor: r.cmd.Actor, Reason: r.cmd.Reason, Command: r.cmd.ID}
	return l.ledger.RecordThen(now, record, ledger.EntryID{}, r.done)
}

// freeForGood journals that the slot of an entry is free, if it is held.
func (l *limits) freeForGood(now time.Time, at ledger.EntryID, tag, why string) error {
	h, err := l.entries.Slots.HeldSlot(at.Stream, at.Offset, tag)
	if err != nil || h == nil {
		return err
	}
	h.Why = why
	l.counters.SlotsFreed.NoQueue++
	return l.ledger.Record(now, wire.JournalRecord{Type: wire.TypeFreed, Slots: []wire.HeldSlot{*h}, Reason: why}, ledger.EntryID{})
}

// What one record at low water has at most.
const (
	maxLimitPiece = 20 // definitions, each of up to three layers of 64 KiB
	maxRatePiece  = 5000
)

// limitPieces divides limits and rates among records. The first of them replaces what was known.
func limitPieces(defined []*wire.DefinedLimit, rates map[string]int64) (all []wire.LimitPiece) {
	for some := range slices.Chunk(defined, maxLimitPiece) {
		piece := wire.LimitPiece{Limits: []wire.DefinedLimit{}, More: len(all) > 0}
		for _, d := range some {
			piece.Limits = append(piece.Limits, *d)
		}
		all = append(all, piece)
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(rates)), maxRatePiece) {
		piece := wire.LimitPiece{Limits: []wire.DefinedLimit{}, Rates: map[string]int64{}, More: len(all) > 0}
		for _, id := range some {
			piece.Rates[id] = rates[id]
		}
		all = append(all, piece)
	}
	return all
}

// carryOver writes the limits, the rates in use and the slots again, because low water would forget
// them.
func (l *limits) carryOver(now time.Time, record func(time.Time, wire.JournalRecord, func()) error) error {
	defined := l.entries.Limits.Limits()
	for _, piece := range limitPieces(defined, l.gate.Rates(now)) {
		if err := record(now, wire.JournalRecord{Type: wire.TypeState, Limits: &piece}, func() {}); err != nil {
			return err
		}
	}
	var held []wire.HeldSlot
	err := l.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		held = append(held, *h)
		return true
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(held, maxOutcomes) {
		if err := l.ledger.Record(now, wire.JournalRecord{Type: wire.TypeState, Slots: some}, ledger.EntryID{}); err != nil {
			return err
		}
	}
	return nil
}

// GoneReason is the reason in the journal for freeing slots that the broker's figures deny.
const GoneReason = "its queue has fewer messages than slots"

// freeGone journals that slots are free whose jobs are gone, as far as they are still held.
func (l *limits) freeGone(now time.Time, gone []wire.HeldSlot) error {
	for some := range slices.Chunk(gone, maxOutcomes) {
		var held []wire.HeldSlot
		for _, h := range some {
			still, err := l.entries.Slots.HeldSlot(h.Stream, h.Offset, h.JID)
			if err != nil {
				return err
			}
			if still != nil && slices.Equal(still.Fires, h.Fires) {
				h.Why = GoneReason
				held = append(held, h)
			}
		}
		if len(held) == 0 {
			continue
		}
		l.counters.SlotsFreed.Gone += int64(len(held))
		if err := l.ledger.Record(now, wire.JournalRecord{Type: wire.TypeFreed, Slots: held, Reason: GoneReason}, ledger.EntryID{}); err != nil {
			return err
		}
	}
	return nil
}

package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// The job of a tick is an entry of scheduled_jobs. The entry itself names the tick. When the view
// has read it, the leader journals the outcome of the tick. If the leader ends in between, the next
// one journals it before it decides about any tick. A tick that is skipped is only journaled.
//
// The leader decides in rounds: it takes at most one decision for each periodic job, and takes the
// next ones when the view has read the outcomes of all of these. So the outcomes of one job are in
// the journal in order, also if the broker refuses a record at first, and each leader knows all
// that was decided before.

// periodics decides about the ticks of periodic jobs.
type periodics struct {
	base
	carry   *carrier
	plans   map[string]*plan
	version int64              // of the view, when the plans were made
	making  map[string]*making // by the key in the headers
	open    int                // records that were not read back yet
	waiting []waitingPeriodic  // commands
	at      time.Time          // when it was last looked for due ticks, or for what was made
	stalled time.Duration      // since anything that was made was read back
	next    time.Time          // when the next tick is due
}

// making is a job on its way to scheduled_jobs.
type making struct {
	sent      *ledger.Publish
	journaled bool
	answer    func(wire.Reply) // nil for a tick
}

// waitingPeriodic is a command that waits for the end of a round.
type waitingPeriodic struct {
	at time.Time
	request
}

// What a round may take.
const (
	maxMaking   = 512 // jobs
	maxOutcomes = 500 // of a record
)

// madeWithin is how long the view may take to read a job of a tick. RabbitMQ 3.10 may confirm a
// record and lose it: then the next epoch makes the job again.
const madeWithin = 30 * time.Second

// clockSlack is how far ahead the outcomes of another leader may be because clocks differ.
const clockSlack = 60

// busy reports whether a round is under way.
func (p *periodics) busy() bool { return p.open > 0 || len(p.making) > 0 }

// step journals what was made, and begins the next round when something is due.
func (p *periodics) step(now time.Time) error {
	if len(p.making) > 0 {
		return p.journalMade(now)
	}
	version := p.entries.Periodics.PeriodicVersion()
	if p.busy() || p.carry.rests() || !p.entries.Periodics.EverPeriodic() && len(p.waiting) == 0 {
		return nil
	}
	if version != p.version {
		p.refresh(version)
	} else if len(p.waiting) == 0 && now.Before(p.next) && now.Sub(p.at) < maxSleep && !now.Before(p.at) {
		return nil
	}
	p.at = now
	for len(p.waiting) > 0 && !p.busy() && p.earliest() > min(p.waiting[0].at.Unix(), now.Unix()) {
		w := p.waiting[0]
		p.waiting = p.waiting[1:]
		if err := p.carryOut(now, w); err != nil {
			return err
		}
	}
	if !p.busy() {
		if err := p.decideAll(now); err != nil {
			return err
		}
	}
	p.next = p.wakeAt(now)
	return nil
}

// wake returns when the next tick is due.
func (p *periodics) wake(now time.Time) time.Time {
	if len(p.making) > fewReplacing {
		return now.Add(lookEvery)
	}
	return p.wakeAt(now)
}

func (p *periodics) wakeAt(now time.Time) time.Time {
	if next := p.earliest(); !p.busy() && next < now.Add(maxSleep).Unix()+1 {
		return time.Unix(next, 0)
	}
	return now.Add(maxSleep)
}

// earliest returns the first tick without an outcome, of all jobs.
func (p *periodics) earliest() int64 {
	next := int64(math.MaxInt64)
	for _, pl := range p.plans {
		next = min(next, pl.next)
	}
	return next
}

// refresh takes in what the view has of the periodic jobs.
func (p *periodics) refresh(version int64) {
	p.version = version
	old := p.plans
	p.plans = map[string]*plan{}
	for _, j := range p.entries.Periodics.PeriodicJobs() {
		pl := old[j.Name]
		if pl == nil || !sameLayers(pl.job, j) {
			pl = newPlan(j)
		}
		if pl.job = j; pl.schedule != nil {
			pl.next = pl.schedule.Undecided(j, j.Through)
		}
		p.plans[j.Name] = pl
	}
}

// decideAll decides about the ticks that are due, the oldest first.
func (p *periodics) decideAll(now time.Time) error {
	var due []*plan
	for _, pl := range p.plans {
		if pl.schedule != nil && (pl.next <= now.Unix() || pl.job.Through > now.Unix()+clockSlack) {
			due = append(due, pl)
		}
	}
	slices.SortFunc(due, func(a, b *plan) int {
		return cmp.Or(cmp.Compare(a.next, b.next), cmp.Compare(a.job.Name, b.job.Name))
	})
	var outcomes []wire.Tick
	for _, pl := range due {
		if len(p.making) >= maxMaking || !p.ledger.Room() {
			break
		}
		tick, err := p.decide(now.Unix(), pl)
		if err == nil && tick.Outcome == wire.TickMade {
			tick, err = p.make(now, pl, tick)
		}
		if err != nil {
			return err
		}
		if tick.Outcome != "" {
			outcomes = append(outcomes, tick)
		}
	}
	return p.journal(now, outcomes)
}

// decide returns the outcome of the first tick of a job that has none.
func (p *periodics) decide(now int64, pl *plan) (wire.Tick, error) {
	if pl.job.Through > now+clockSlack { // the clock of a leader was ahead, or was set back
		return wire.Tick{Periodic: pl.job.Name, Tick: now, Outcome: wire.TickVoid}, nil
	}
	due := dueTicks(pl, now)
	missed := pl.missed(now, due)
	why := func(i int) string {
		switch {
		case pl.def.Paused:
			return wire.WhyPaused
		case pl.schedule.Excepted(due[i]):
			return wire.WhyExcept
		case i < missed:
			return wire.WhyMissed
		}
		return ""
	}
	t := wire.Tick{Periodic: pl.job.Name, Tick: due[0], Outcome: wire.TickSkipped, Why: why(0)}
	if t.Why == "" {
		waits, err := p.lastWaits(pl)
		if t.Why = wire.WhyOverlap; !waits {
			t.Why, t.Outcome, t.JID = "", wire.TickMade, wire.TickJID(t.Periodic, t.Tick)
		}
		return t, err
	}
	n := 1
	for n < len(due) && why(n) == t.Why {
		n++
	}
	if n > 1 {
		t.From, t.Tick, t.Count = due[0], due[n-1], int64(n)
	}
	return t, nil
}

// lastWaits reports whether the newest job of a periodic job waits, if it matters: for its time,
// for a retry or for its queue.
func (p *periodics) lastWaits(pl *plan) (bool, error) {
	if pl.def.Overlap != wire.OverlapSkip {
		return false, nil
	}
	jid := ""
	for _, t := range pl.job.Recent {
		jid = cmp.Or(t.JID, jid)
	}
	if jid == "" {
		return false, nil
	}
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries, wire.Gated} {
		if found, err := p.entries.Find(stream, jid); err != nil || len(found) > 0 {
			return true, err
		}
	}
	return false, nil
}

// make publishes the job of a tick. If there can be none, it returns that as the outcome.
func (p *periodics) make(now time.Time, pl *plan, t wire.Tick) (wire.Tick, error) {
	a := wire.Announcement{What: wire.TypeTicked, Key: wire.TickKey(t.Periodic, t.Tick, "")}
	err := p.publish(now, pl, a, t.JID, t.Tick, pl.schedule.Due(t.Periodic, t.Tick), nil)
	if errors.Is(err, errNoTick) {
		return wire.Tick{Periodic: t.Periodic, Tick: t.Tick, Outcome: wire.TickSkipped, Why: wire.WhyRefused}, nil
	}
	return wire.Tick{}, err
}

// errNoTick is returned if no job can be made of a definition.
var errNoTick = errors.New("scheduler: no job can be made of the definition")

// publish appends the entry of a job.
func (p *periodics) publish(now time.Time, pl *plan, a wire.Announcement, jid string, tick int64, due float64, answer func(wire.Reply)) error {
	record, err := pl.def.TickEntry(pl.job.Name, jid, tick, due)
	if err != nil {
		return errors.Join(errNoTick, err)
	}
	headers := a.Headers(p.ledger.Epoch())
	sent := &ledger.Publish{Plain: true, Returned: indeterminate(wire.ScheduledJobs), Size: len(record), Build: func(int64, int64) wire.Message {
		return wire.Carry(wire.ScheduledJobs, jid, record, headers)
	}}
	err = p.ledger.Send(sent)
	if errors.Is(err, broker.ErrUnpublishable) {
		return errors.Join(errNoTick, err)
	}
	if err == nil {
		p.making[a.Key], p.stalled = &making{sent: sent, answer: answer}, 0
		if answer == nil {
			p.counters.Ticks.Late.note(now.Sub(time.Unix(tick, 0)))
		}
	}
	return err
}

// journalMade journals the jobs that the view has read.
func (p *periodics) journalMade(now time.Time) error {
	if p.stalled += p.ledger.Passed(); p.stalled > madeWithin && p.setup.hasRead(wire.ScheduledJobs, now.Add(-madeWithin/2)) {
		return fmt.Errorf("%w: %s does not have the job of a tick, which it has confirmed", errIndeterminate, wire.ScheduledJobs)
	}
	if len(p.making) > fewReplacing && now.Sub(p.at) < lookEvery && !now.Before(p.at) {
		return nil
	}
	p.at = now
	announced, err := p.entries.Announced()
	if err != nil {
		return err
	}
	var ticks []wire.Tick
	for _, a := range announced {
		under := p.making[a.Key]
		if a.What != wire.TypeTicked || under == nil || under.journaled || !under.sent.Acked() {
			continue
		}
		under.journaled, p.stalled = true, 0
		if under.answer != nil {
			err = p.journalOne(now, a)
		} else {
			var t wire.Tick
			t, err = madeTick(a)
			ticks = append(ticks, t)
		}
		if err != nil {
			return err
		}
	}
	return p.journal(now, ticks)
}

// madeTick returns the outcome that an entry announces.
func madeTick(a wire.Announcement) (wire.Tick, error) {
	name, tick, run, err := wire.ParseTickKey(a.Key)
	by := a.Offset
	t := wire.Tick{Periodic: name, Tick: tick, Outcome: wire.TickMade, JID: a.JID, By: &by}
	if run {
		t.Outcome = wire.TickRun
	}
	return t, err
}

// journal journals outcomes. The round ends when they are read back.
func (p *periodics) journal(now time.Time, outcomes []wire.Tick) error {
	for ticks := range slices.Chunk(outcomes, maxOutcomes) {
		for _, t := range ticks {
			p.counters.Ticks.count(t)
		}
		if err := p.record(now, wire.JournalRecord{Type: wire.TypeTicked, Ticks: ticks}, func() {
			for _, t := range ticks {
				delete(p.making, wire.TickKey(t.Periodic, t.Tick, ""))
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// journalOne journals what one entry announces: the job of a run, or of a tick of an earlier
// leader.
func (p *periodics) journalOne(now time.Time, a wire.Announcement) error {
	t, err := madeTick(a)
	if err != nil {
		return err
	}
	p.counters.Ticks.count(t)
	r := wire.JournalRecord{Type: wire.TypeTicked, Ticks: []wire.Tick{t}, Actor: a.Actor, Command: a.Command}
	return p.record(now, r, func() {
		under := p.making[a.Key]
		if delete(p.making, a.Key); under != nil && under.answer != nil {
			under.answer(wire.Reply{Status: wire.StatusOK, JID: t.JID, Entry: t.By})
		}
	})
}

// record journals a record of the round.
func (p *periodics) record(now time.Time, r wire.JournalRecord, then func()) error {
	p.open++
	return p.ledger.RecordThen(now, r, ledger.EntryID{}, func() error {
		p.open--
		then()
		return nil
	})
}

// carryOver writes the periodic jobs again, because low water would forget them. There is no round
// under way, and none begins before they are read back.
func (p *periodics) carryOver(now time.Time) error {
	after, piece := "", []wire.PeriodicJob{}
	send := func(through string) error {
		r := wire.JournalRecord{Type: wire.TypeState, Periodics: &wire.PeriodicPiece{After: after, Through: through, Jobs: piece}}
		after, piece = through, []wire.PeriodicJob{}
		return p.record(now, r, func() {})
	}
	if !p.entries.Periodics.EverPeriodic() {
		return nil
	}
	for _, j := range p.entries.Periodics.PeriodicJobs() {
		if len(piece) == maxPiece {
			if err := send(piece[maxPiece-1].Name); err != nil {
				return err
			}
		}
		piece = append(piece, *j)
	}
	return send("")
}

// maxPiece is how many periodic jobs a record has at low water.
const maxPiece = 100

package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// command carries out a command about what is defined when the round has ended, and all ticks
// before the command have outcomes: what it changes is about later ones.
func (p *periodics) command(now time.Time, r request) error {
	if len(p.waiting) >= maxEnqueuing {
		return r.reply(unavailable("too many commands about definitions wait: nothing was done, try again"))
	}
	p.waiting = append(p.waiting, waitingPeriodic{now, r})
	return nil
}

func (p *periodics) carryOut(now time.Time, w waitingPeriodic) error {
	cmd := &w.cmd
	if cmd.Command == wire.CommandDefine {
		return p.define(now, w)
	}
	kind, name := p.kind(cmd)
	layers := kind.layers(name)
	if layers == nil {
		return w.reply(notFound(fmt.Sprintf("there is no %s %q", kind.word, name)))
	}
	switch cmd.Command {
	case wire.CommandForget:
		return p.forget(now, w, kind, name, layers)
	case wire.CommandRun:
		return p.run(now, w, p.entries.Periodics.PeriodicJob(name))
	case wire.CommandSkip:
		return p.skip(now, w, p.entries.Periodics.PeriodicJob(name))
	}
	return p.pause(now, w, kind, name, layers)
}

// kind returns what a command is about.
func (p *periodics) kind(cmd *wire.Command) (*definedKind, string) {
	if cmd.Limit != "" {
		return limitKind(p.entries.Limits), cmd.Limit
	}
	if cmd.Governed != "" {
		return queueKind(p.entries.Governed), cmd.Governed
	}
	return periodicKind(p.entries.Periodics), cmd.Periodic
}

// define sets what a source defines. What the source had before and does not name is removed.
// Operators name only what they change.
func (p *periodics) define(now time.Time, w waitingPeriodic) error {
	d := w.cmd.Definitions
	c := defining{layer: cmp.Or(d.Layer, wire.LayerCode), source: d.Source, did: wire.DefineResult{Made: []string{}, Changed: []string{}, Forgotten: []string{}}}
	periodics, err := d.Periodics()
	if err == nil && d.PeriodicJobs != nil {
		err = c.section(periodicKind(p.entries.Periodics), periodics)
	}
	limits, fault := d.NamedLimits()
	if err = cmp.Or(err, fault); err == nil && d.Limits != nil {
		err = c.section(limitKind(p.entries.Limits), limits)
	}
	queues, fault := d.GovernedQueues()
	if err = cmp.Or(err, fault); err == nil && d.Queues != nil {
		err = c.section(queueKind(p.entries.Governed), queues)
	}
	if err != nil {
		return w.reply(refusal(err))
	}
	reply := wire.Reply{Status: wire.StatusOK, Defined: &c.did}
	if w.cmd.DryRun {
		return w.reply(reply)
	}
	return p.journalDefined(now, w, c.changes, reply)
}

// journalDefined journals changes, and answers when they are read back.
func (p *periodics) journalDefined(now time.Time, w waitingPeriodic, changes []wire.Defined, reply wire.Reply) error {
	for i := range changes {
		changes[i].Since = w.at.Unix()
	}
	r := wire.JournalRecord{Type: wire.TypeDefined, Defined: changes, Actor: w.cmd.Actor, Reason: w.cmd.Reason, Command: w.cmd.ID}
	if len(changes) == 0 {
		// Another leader may have changed it. This one learns that before it reads the record back.
		r = p.ledger.Progress()
	}
	return p.record(now, r, func() { w.answer(reply) })
}

// forget removes a definition, or one layer of it.
func (p *periodics) forget(now time.Time, w waitingPeriodic, kind *definedKind, name string, layers map[string]wire.DefinedLayer) error {
	var changes []wire.Defined
	for _, layer := range wire.Layers {
		if _, has := layers[layer]; has && (w.cmd.Layer == "" || w.cmd.Layer == layer) {
			changes = append(changes, wire.Defined{Kind: kind.kind, Name: name, Layer: layer})
		}
	}
	if len(changes) == 0 {
		return w.reply(notFound(fmt.Sprintf("%s %q has no definition in the layer %s", kind.word, name, w.cmd.Layer)))
	}
	return p.journalDefined(now, w, changes, wire.Reply{Status: wire.StatusDone})
}

// pause pauses or resumes what is defined, in the operator's layer.
func (p *periodics) pause(now time.Time, w waitingPeriodic, kind *definedKind, name string, layers map[string]wire.DefinedLayer) error {
	change, err := pausing(kind, name, layers, w.cmd.Command == wire.CommandPause)
	if err != nil {
		return w.reply(conflict(err.Error()))
	}
	if change == nil {
		return p.journalDefined(now, w, nil, wire.Reply{Status: wire.StatusDone})
	}
	return p.journalDefined(now, w, []wire.Defined{*change}, wire.Reply{Status: wire.StatusDone})
}

// run enqueues the job of a periodic job now. That is no tick.
func (p *periodics) run(now time.Time, w waitingPeriodic, job *wire.PeriodicJob) error {
	pl := newPlan(job)
	if pl.schedule == nil {
		return w.reply(incomplete(job))
	}
	a := wire.Announcement{What: wire.TypeTicked, Key: wire.TickKey(job.Name, now.Unix(), random()), Actor: w.cmd.Actor, Command: w.cmd.ID}
	err := p.publish(now, pl, a, random(), now.Unix(), wire.Seconds(now), w.answer)
	if errors.Is(err, errNoTick) {
		return w.reply(badRequest(err.Error()))
	}
	return err
}

func incomplete(job *wire.PeriodicJob) wire.Reply {
	_, err := job.Definition()
	return conflict(fmt.Sprintf("the definition of periodic job %q is not complete: %v", job.Name, err))
}

// maxAhead is how many coming ticks of a job may be skipped ahead.
const maxAhead = 20

// skip gives a coming tick its outcome.
func (p *periodics) skip(now time.Time, w waitingPeriodic, job *wire.PeriodicJob) error {
	pl := newPlan(job)
	if pl.schedule == nil {
		return w.reply(incomplete(job))
	}
	next := pl.schedule.NextOf(job, now.Unix(), 1)
	ahead := 0
	for _, t := range job.Recent {
		if t.Tick > now.Unix() && t.Why == wire.WhyAsked {
			ahead++
		}
	}
	if len(next) == 0 || ahead >= maxAhead {
		return w.reply(conflict(fmt.Sprintf("periodic job %q has no tick to skip, or %d are skipped already", job.Name, maxAhead)))
	}
	tick := next[0]
	if w.cmd.Tick != nil {
		tick = *w.cmd.Tick
	}
	if tick < next[0] || pl.schedule.Next(tick-1) != tick || job.Decided(tick) {
		return w.reply(conflict(fmt.Sprintf("%d is no coming tick of periodic job %q; the next one is %d", tick, job.Name, next[0])))
	}
	t := wire.Tick{Periodic: job.Name, Tick: tick, Outcome: wire.TickSkipped, Why: wire.WhyAsked}
	p.counters.Ticks.count(t)
	r := wire.JournalRecord{Type: wire.TypeTicked, Ticks: []wire.Tick{t}, Actor: w.cmd.Actor, Reason: w.cmd.Reason, Command: w.cmd.ID}
	return p.record(now, r, func() { w.answer(wire.Reply{Status: wire.StatusOK, Tick: tick}) })
}

package scheduler

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/periodic"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// command carries out a command about periodic jobs when the round has ended, and all ticks before
// the command have outcomes: what it changes is about later ones.
func (p *periodics) command(now time.Time, r request) error {
	if len(p.waiting) >= maxEnqueuing {
		return r.reply(unavailable("too many commands about periodic jobs wait: nothing was done, try again"))
	}
	p.waiting = append(p.waiting, waitingPeriodic{now, r})
	return nil
}

func (p *periodics) carryOut(now time.Time, w waitingPeriodic) error {
	cmd := &w.cmd
	if cmd.Command == wire.CommandDefine {
		return p.define(now, w)
	}
	job := p.entries.Periodics.PeriodicJob(cmd.Periodic)
	if job == nil {
		return w.reply(notFound(fmt.Sprintf("there is no periodic job %q", cmd.Periodic)))
	}
	switch cmd.Command {
	case wire.CommandForget:
		return p.forget(now, w, job)
	case wire.CommandRun:
		return p.run(now, w, job)
	case wire.CommandSkip:
		return p.skip(now, w, job)
	}
	return p.pause(now, w, job)
}

// define sets what a source defines. What the source had before and does not name is removed.
// Operators name only what they change.
func (p *periodics) define(now time.Time, w waitingPeriodic) error {
	d := w.cmd.Definitions
	layer := cmp.Or(d.Layer, wire.LayerCode)
	wanted, err := d.Periodics()
	if err != nil {
		return w.reply(badRequest(err.Error()))
	}
	c := defining{known: p.entries.Periodics, layer: layer, source: d.Source, did: wire.DefineResult{Made: []string{}, Changed: []string{}, Forgotten: []string{}}}
	for _, one := range wanted {
		if err := c.set(one); err != nil {
			return w.reply(refusal(err))
		}
	}
	if layer != wire.LayerOperator {
		c.forgetOthers(wanted)
	}
	all := p.entries.Periodics.PeriodicJobs()
	if n := len(all) + len(c.did.Made); n > wire.MaxPeriodic {
		return w.reply(conflict(fmt.Sprintf("that would be %d periodic jobs, at most %d are allowed", n, wire.MaxPeriodic)))
	}
	reply := wire.Reply{Status: wire.StatusOK, Defined: &c.did}
	if w.cmd.DryRun {
		return w.reply(reply)
	}
	return p.journalDefined(now, w, c.changes, reply)
}

// defining collects what a command changes.
type defining struct {
	known         *tracker.PeriodicJobs
	layer, source string
	changes       []wire.Defined
	did           wire.DefineResult
}

// errConflict wraps why a definition conflicts with another.
var errConflict = errors.New("conflict")

func refusal(err error) wire.Reply {
	if errors.Is(err, errConflict) {
		return conflict(err.Error())
	}
	return badRequest(err.Error())
}

// set sets the layer of one job.
func (c *defining) set(one wire.NamedPeriodic) error {
	job := c.known.PeriodicJob(one.Name)
	if job == nil {
		job = &wire.PeriodicJob{Name: one.Name}
	}
	before, had := job.Layers[c.layer]
	if had && c.layer != wire.LayerOperator && before.Source != c.source {
		return fmt.Errorf("%w: periodic job %q is defined by source %q: remove it there, or delete it", errConflict, one.Name, before.Source)
	}
	if had && bytes.Equal(before.Value, one.Value) {
		c.did.Unchanged++
		return nil
	}
	if err := check(job, c.layer, one.Value); err != nil {
		return fmt.Errorf("periodic job %q: %w", one.Name, err)
	}
	c.changes = append(c.changes, wire.Defined{Kind: wire.KindPeriodic, Name: one.Name, Layer: c.layer, Source: c.source, Value: one.Value})
	if len(job.Layers) == 0 {
		c.did.Made = append(c.did.Made, one.Name)
	} else {
		c.did.Changed = append(c.did.Changed, one.Name)
	}
	return nil
}

// forgetOthers removes what the source had and does not name any more.
func (c *defining) forgetOthers(wanted []wire.NamedPeriodic) {
	named := map[string]bool{}
	for _, one := range wanted {
		named[one.Name] = true
	}
	for _, job := range c.known.PeriodicJobs() {
		if l, has := job.Layers[c.layer]; has && l.Source == c.source && !named[job.Name] {
			c.changes = append(c.changes, wire.Defined{Kind: wire.KindPeriodic, Name: job.Name, Layer: c.layer, Source: c.source})
			c.did.Forgotten = append(c.did.Forgotten, job.Name)
		}
	}
}

// check returns an error if a job would not be complete with another layer.
func check(job *wire.PeriodicJob, layer string, value json.RawMessage) error {
	with := wire.PeriodicJob{Name: job.Name, Layers: maps.Clone(job.Layers)}
	if with.Layers == nil {
		with.Layers = map[string]wire.DefinedLayer{}
	}
	with.Layers[layer] = wire.DefinedLayer{Value: value}
	def, err := with.Definition()
	if err != nil {
		return err
	}
	if _, err := periodic.New(&def); err != nil {
		return err
	}
	_, err = def.TickEntry(job.Name, wire.TickJID(job.Name, 0), 0, 0)
	return err
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

// forget removes a job, or one layer of it.
func (p *periodics) forget(now time.Time, w waitingPeriodic, job *wire.PeriodicJob) error {
	var changes []wire.Defined
	for _, layer := range wire.Layers {
		if _, has := job.Layers[layer]; has && (w.cmd.Layer == "" || w.cmd.Layer == layer) {
			changes = append(changes, wire.Defined{Kind: wire.KindPeriodic, Name: job.Name, Layer: layer})
		}
	}
	if len(changes) == 0 {
		return w.reply(notFound(fmt.Sprintf("periodic job %q has no definition in the layer %s", job.Name, w.cmd.Layer)))
	}
	return p.journalDefined(now, w, changes, wire.Reply{Status: wire.StatusDone})
}

// pause pauses or resumes a job, in the operator's layer.
func (p *periodics) pause(now time.Time, w waitingPeriodic, job *wire.PeriodicJob) error {
	members := map[string]json.RawMessage{}
	if l, has := job.Layers[wire.LayerOperator]; has {
		if err := json.Unmarshal(l.Value, &members); err != nil {
			return w.reply(conflict(err.Error()))
		}
	}
	def, _ := job.Definition()
	pauses := w.cmd.Command == wire.CommandPause
	if def.Paused == pauses {
		return p.journalDefined(now, w, nil, wire.Reply{Status: wire.StatusDone})
	}
	change := wire.Defined{Kind: wire.KindPeriodic, Name: job.Name, Layer: wire.LayerOperator, Op: "paused"}
	if members["paused"] = json.RawMessage("true"); !pauses {
		members["paused"], change.Op = json.RawMessage("false"), "resumed"
	}
	var err error
	if change.Value, err = json.Marshal(members); err != nil {
		return w.reply(conflict(err.Error()))
	}
	return p.journalDefined(now, w, []wire.Defined{change}, wire.Reply{Status: wire.StatusDone})
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

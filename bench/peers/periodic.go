package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/bench/peers/work"
)

const (
	definedAhead = 10 * time.Second // all must be there so long before the tick
	killedAhead  = 3 * time.Second  // so long before the second tick, what schedules is killed
	startedAfter = 5 * time.Second  // so long after that tick, it is started again
	tickWithin   = 45 * time.Second // so late a job may be
)

// periodic measures jobs that are all due at one minute, and what becomes of the next minute's if
// what schedules is killed before it and started again after it.
func (m *measured) periodic(ctx context.Context) error {
	if err := errors.Join(m.startScheduler(ctx), m.startWorkers(ctx)); err != nil {
		return err
	}
	tick := time.Now().Add(definedAhead).Truncate(time.Minute).Add(time.Minute)
	if err := sleepUntil(ctx, tick.Add(tickWithin)); err != nil {
		return err
	}
	what := fmt.Sprintf("%d periodic jobs due at one minute: ", m.work.Jobs)
	missing, err := m.reportTick(what, tick)
	if err != nil {
		return err
	}
	again := fmt.Sprintf("what schedules is dead for %v around the minute: ", killedAhead+startedAfter)
	if missing > 0 { // they would be taken for jobs of the next tick
		m.table.note(m.peer.name, again+fmt.Sprintf("not begun within %v", tickWithin), "not measured")
		return nil
	}
	next := tick.Add(time.Minute)
	if err := sleepUntil(ctx, next.Add(-killedAhead)); err != nil {
		return err
	}
	if err := m.killSchedules(); err != nil {
		return err
	}
	if err := sleepUntil(ctx, next.Add(startedAfter)); err != nil {
		return err
	}
	if err := m.startSchedules(ctx); err != nil {
		return err
	}
	if err := sleepUntil(ctx, next.Add(tickWithin)); err != nil {
		return err
	}
	_, err = m.reportTick(again, next)
	return err
}

func sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}

func (m *measured) startScheduler(ctx context.Context) (err error) {
	if c := m.peer.command(m.work, "scheduler"); c != nil {
		m.scheduler, err = c.start(ctx, m.work)
	}
	return err
}

// killSchedules kills what schedules.
func (m *measured) killSchedules() error {
	switch m.peer.schedules {
	case theSidecar:
		m.server.(*sidecar).running.Kill()
		return nil
	case theScheduler:
		err := m.scheduler.kill()
		m.scheduler = nil
		return err
	default:
		return m.end()
	}
}

// startSchedules starts that again.
func (m *measured) startSchedules(ctx context.Context) error {
	switch m.peer.schedules {
	case theSidecar:
		return m.server.(*sidecar).startSidecar(ctx)
	case theScheduler:
		return m.startScheduler(ctx)
	default:
		return m.startWorkers(ctx)
	}
}

// reportTick reports the jobs of a tick, and returns how many have not begun.
func (m *measured) reportTick(what string, tick time.Time) (missing int, err error) {
	all, err := events(m.work.Log)
	if err != nil {
		return 0, err
	}
	at := time.Duration(work.Now()) - time.Since(tick)
	begun := map[int]int{}
	var late []time.Duration
	for _, e := range all {
		if !e.begins || e.at < at-killedAhead || e.at >= at+time.Minute-killedAhead {
			continue
		}
		begun[e.id]++
		late = append(late, e.at-at)
	}
	m.table.addSpans(m.peer.name, what+"late", late)
	m.table.addWorst(m.peer.name, what+fmt.Sprintf("not begun within %v", tickWithin), whole, float64(m.work.Jobs-len(begun)))
	m.table.addWorst(m.peer.name, what+"doubled", whole, float64(twice(begun)))
	if len(late) == 0 {
		m.table.note(m.peer.name, what+"late, p50", "–")
		m.table.note(m.peer.name, what+"late, p99", "–")
	}
	return m.work.Jobs - len(begun), nil
}

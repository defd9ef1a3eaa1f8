package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// Somebody may unbind jobs.route from jobs.fire: then fires are journaled, confirmed, and reach no queue. Every sidecar looks at it each
// minute, and notes how far it had read the journal when all was well. The leader that finds it otherwise ends its epoch; whoever leads
// next mends it before it fires, and fires again what the journal has had since.

// errUnrouted ends an epoch whose fires reach no queue.
var errUnrouted = errors.New("scheduler: jobs.fire is not bound to jobs.route: what is fired reaches no queue")

// unknown offset: this process has never seen that all was well.
const neverLooked = -2

// lookWithin bounds how long a leader waits for the management API before it fires.
const lookWithin = 2 * time.Second

// look tells whether fires reach no queue. If they do reach theirs, all that the view has read did.
func (s *Scheduler) look(ctx context.Context, conn *broker.Conn) (unrouted bool) {
	at, err := s.entries.Position(wire.Journal)
	if err != nil || !s.fit() {
		at = neverLooked
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	bound, err := conn.FireIsRouted(ctx, s.mgmt)
	if err != nil {
		s.log.Warn("scheduler: cannot see what jobs.fire is bound to", "error", err)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if bound && at != neverLooked && !s.doubted {
		s.routedTo = at
	}
	return !bound
}

// mendFire makes the bindings of jobs.fire anew if they are not right. Only who holds the lock may: nobody fires meanwhile.
func (s *Scheduler) mendFire(ctx context.Context, conn *broker.Conn) error {
	if !s.look(ctx, conn) {
		return nil
	}
	s.mu.Lock()
	s.doubted = true
	s.mu.Unlock()
	s.log.Error("scheduler: jobs.fire was not bound to jobs.route, and is again: what was fired since the last look is fired again")
	return conn.RebuildFire(ctx)
}

// unrouted lists the fires of earlier epochs that may have reached no queue, whatever was confirmed.
func (l *leadership) unrouted(ctx context.Context) ([]tracker.Doubt, error) {
	l.s.mu.Lock()
	from, doubted := l.s.routedTo, l.s.doubted
	l.s.mu.Unlock()
	if !doubted {
		return nil, nil
	}
	if from == neverLooked {
		l.s.log.Error("scheduler: nobody knows since when jobs.fire was not bound: nothing is fired again; see what the journal says was fired")
		return nil, nil
	}
	var all []tracker.Doubt
	err := l.s.records.Read(ctx, wire.Journal, from+1, func(records []wire.Record) error {
		for _, r := range records {
			if r.Offset >= l.core.epoch {
				return errRead
			}
			if d, fired := wire.DeedOf(r.Headers); fired && !d.Burial() && r.Offset > from && l.s.entries.Trusts(&r) {
				all = append(all, doubtOf(&r, d))
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errRead) {
		return nil, fmt.Errorf("scheduler: reading what was fired: %w", err)
	}
	return all, nil
}

var errRead = errors.New("all is read")

func doubtOf(r *wire.Record, d wire.Deed) tracker.Doubt {
	doubt := tracker.Doubt{Epoch: d.Epoch, Seq: d.Seq, Op: d.Op, JID: d.JIDTag, Command: d.Command, Body: r.Body, Returned: true}
	doubt.Place.Stream, doubt.Place.Offset = d.Stream, d.Offset
	return doubt
}

// nothingDoubted is told that what was doubted has been fired again.
func (s *Scheduler) nothingDoubted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted = false
}

// doubtAlso has fires settled again that had been taken for delivered. What came back is pending, and fires by itself.
func (c *core) doubtAlso(fires []tracker.Doubt) error {
	open := map[spot]int{}
	for i, d := range c.settling.open {
		open[spotOf(&d)] = i
	}
	for _, d := range fires {
		if i, known := open[spotOf(&d)]; known {
			c.settling.open[i].Returned = true
			continue
		}
		s, err := c.entries.Get(d.Place.Stream, d.Place.Offset)
		if err != nil {
			return err
		}
		if s != nil {
			continue
		}
		open[spotOf(&d)] = len(c.settling.open)
		c.settling.open = append(c.settling.open, d)
	}
	return nil
}

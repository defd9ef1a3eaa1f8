package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRowsAreNumbered(t *testing.T) {
	for i, r := range rows() {
		require.Equal(t, i+1, r.number)
		require.True(t, slices.ContainsFunc(brokers, r.runsOn), "%s runs nowhere", r.name)
	}
	require.False(t, rows()[13].runsOn(rabbit310), "it has no virtual hosts with quorum queues by default")
}

// The number of jobs that may be doubled depends on the row, the queue and the number of faults.
func TestBoundsOfDoubles(t *testing.T) {
	w := &world{options: options{broker: rabbit43}}
	w.mark(classic(0))
	broken := func(s scope, byQueue map[string]int) (all []string) {
		total := 0
		for _, n := range byQueue {
			total += n
		}
		w.boundDoubles(row{doubled: s}, &result{ByQueue: byQueue, Doubled: doubles{Total: total}}, func(holds bool, format string, args ...any) {
			if !holds {
				all = append(all, fmt.Sprintf(format, args...))
			}
		})
		return all
	}
	for _, c := range []struct {
		scope scope
		queue string
		n     int
		holds bool
	}{
		{none, classic(0), 1, false},
		{quorums, classic(0), 1, false},
		{quorums, quorum(0), windowQuorum, true},
		{quorums, quorum(0), windowQuorum + 1, false},
		{affected, classic(0), windowClassic, true},
		{affected, classic(0), windowClassic + 1, false},
		{affected, classic(1), 1, false},
		{open, classic(1), windowClassic, true},
		{open, quorum(1), windowQuorum + 1, false},
	} {
		require.Equal(t, c.holds, len(broken(c.scope, map[string]int{c.queue: c.n})) == 0, "%+v", c)
	}
	require.Len(t, broken(open, map[string]int{"classic1": 512, "classic2": 512, "classic3": 1}), 1, "more than the window")
	w.mark()
	require.Empty(t, broken(open, map[string]int{"classic1": 1024, "quorum1": 128}), "two faults")
}

// In a row of messages, each fault adds what one sidecar has in flight, or all if a node goes away.
func TestBoundOfDoubledMessages(t *testing.T) {
	w := &world{options: options{broker: rabbit43}}
	w.mark()
	w.mark().back = time.Now()
	w.slots = make([]*slot, 3)
	holds := func(doubled int) (holds bool) {
		w.boundDoubles(row{messages: true}, &result{Doubled: doubles{Total: doubled}}, func(h bool, _ string, _ ...any) { holds = h })
		return holds
	}
	const most = 4*inFlight + 2*windowQuorum
	require.True(t, holds(most))
	require.False(t, holds(most+1))
}

// A message that arrives before its time breaks a promise.
func TestEarlyJobs(t *testing.T) {
	j, now := newJobs(), time.Now()
	for jid, due := range map[string]time.Time{"late": now.Add(-time.Second), "early": now.Add(time.Minute)} {
		j.add(jid, "q", due)
		j.arrive(jid, nil, false)
	}
	require.Equal(t, 1, j.early())
}

// LavinMQ's queues have no limit of their own.
func TestBoundsOfOpenFires(t *testing.T) {
	for _, c := range []struct {
		broker string
		silent bool
		open   map[string]int
		total  int
		broken int
	}{
		{rabbit43, false, map[string]int{classic(0): windowClassic, quorum(0): windowQuorum}, window + setAside, 0},
		{rabbit43, false, map[string]int{classic(0): windowClassic + 1, quorum(0): windowQuorum + 1}, window, 2},
		{rabbit43, true, map[string]int{quorum(0): windowClassic, quorum(1): windowClassic + 1}, window, 1},
		{rabbit310, false, nil, window + setAside + 1, 1},
		{lavinMQ, false, map[string]int{classic(0): window}, window, 0},
		{lavinMQ, false, map[string]int{classic(0): window + 1}, window + 1, 1},
	} {
		broken := 0
		w := &world{options: options{broker: c.broker}}
		w.boundOpen(row{silent: c.silent}, &result{Open: c.total, OpenOf: c.open}, func(holds bool, _ string, _ ...any) {
			if !holds {
				broken++
			}
		})
		require.Equal(t, c.broken, broken, "%+v", c)
	}
}

// Times are measured from each fault to the next, for the queues that the fault did not affect.
func TestBoundsOfTimes(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	w := &world{options: options{broker: rabbit310, slack: 1}, truth: newTruth(), jobs: newJobs(), queues: []string{"a", "b"}, observed: observed{ended: time.Now()}}
	come := func(queue string, after float64) {
		jid := fmt.Sprint(queue, after)
		w.jobs.add(jid, queue, began)
		w.jobs.came[jid] = &arrival{first: began.Add(time.Duration(after * float64(time.Second)))}
	}
	w.faults = []*fault{
		{from: began, back: began.Add(10 * time.Second), affected: map[string]bool{"a": true}},
		{from: began.Add(20 * time.Second)},
	}
	for _, after := range []float64{1, 4, 15, 19, 22} {
		come("b", after)
	}
	come("a", 16)
	res := &result{}
	var broken []string
	w.boundTimes(row{own: true, still: rabbits(5)}, res, func(holds bool, format string, args ...any) {
		if !holds {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	})
	require.InDelta(t, 11, res.Standstill, 0.001)
	require.InDelta(t, 11, res.Slowest, 0.001)
	require.InDelta(t, 16, res.Own, 0.001)
	require.InDelta(t, 6, res.AfterBack, 0.001)
	require.Len(t, broken, 3)
}

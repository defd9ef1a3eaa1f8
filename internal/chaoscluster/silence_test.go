package main

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A node is silent from when it should have answered until it answers anything.
func TestSilenceOfNode(t *testing.T) {
	at := func(s float64) time.Time {
		return time.Unix(1_800_000_000, 0).Add(time.Duration(s * float64(time.Second)))
	}
	all := func(uint64) bool { return true }
	only := func(tag uint64) func(uint64) bool { return func(t uint64) bool { return t == tag } }
	for name, c := range map[string]struct {
		do   func(u *unanswered, answered func(time.Time, func(uint64) bool))
		hit  []string
		want float64
	}{
		"a record for a stream": {do: func(u *unanswered, answered func(time.Time, func(uint64) bool)) {
			u.sent(1, published{"", at(1)})
			answered(at(4), all)
		}, want: 3},
		"jobs for two queues, and for more meanwhile": {do: func(u *unanswered, answered func(time.Time, func(uint64) bool)) {
			u.sent(1, published{"classic2", at(1)})
			u.sent(2, published{"classic3", at(2)})
			u.sent(3, published{"quorum1", at(5)})
			answered(at(6), all)
		}, want: 4},
		"one queue": {do: func(u *unanswered, answered func(time.Time, func(uint64) bool)) {
			u.sent(1, published{"classic2", at(1)})
			u.sent(2, published{"classic2", at(2)})
			answered(at(6), all)
		}},
		"it answers others": {do: func(u *unanswered, answered func(time.Time, func(uint64) bool)) {
			u.sent(1, published{"classic2", at(1)})
			u.sent(2, published{"classic3", at(1)})
			u.sent(3, published{"quorum1", at(1)})
			answered(at(2), only(3))
			answered(at(4), only(2))
			answered(at(9), only(1))
		}, want: 2},
		"a record that is never answered": {do: func(u *unanswered, answered func(time.Time, func(uint64) bool)) {
			u.sent(1, published{"", at(1)})
			u.sent(2, published{"classic2", at(50)})
			answered(at(51), only(2))
		}},
		"queues that the fault hits": {do: func(u *unanswered, answered func(time.Time, func(uint64) bool)) {
			u.sent(1, published{"classic2", at(1)})
			u.sent(2, published{"quorum2", at(1)})
			answered(at(6), all)
		}, hit: []string{"classic2"}},
		"a node that the fault hits": {do: func(u *unanswered, answered func(time.Time, func(uint64) bool)) {
			u.sent(1, published{"", at(1)})
			answered(at(6), all)
		}, hit: []string{"classic1"}},
		"only what is after the fault": {do: func(u *unanswered, answered func(time.Time, func(uint64) bool)) {
			u.sent(1, published{"", at(-5)})
			answered(at(2), all)
		}, want: 2},
	} {
		truth := newTruth()
		connection := truth.connection(0, 0, new(atomic.Bool))
		u := &unanswered{}
		c.do(u, func(now time.Time, is func(uint64) bool) {
			if s, ended := u.answered(now, is); ended {
				connection.keep(s)
			}
		})
		hit := map[string]bool{}
		for _, q := range c.hit {
			hit[q] = true
		}
		require.Equal(t, time.Duration(c.want*float64(time.Second)), truth.silence(at(0), at(60), hit), name)
	}
}

// What a frozen tap keeps back is not the broker's silence.
func TestSilenceOfFrozenTapDoesNotCount(t *testing.T) {
	truth, cut := newTruth(), new(atomic.Bool)
	c := truth.connection(0, 0, cut)
	begin := time.Now()
	c.keep(silence{from: begin, to: begin.Add(time.Second), stream: true})
	cut.Store(true)
	c.keep(silence{from: begin, to: begin.Add(time.Minute), stream: true})
	require.Equal(t, time.Second, truth.silence(begin, begin.Add(time.Hour), nil))
}

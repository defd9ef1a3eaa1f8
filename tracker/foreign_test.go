package tracker

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// An entry stream counts as another than the one of earlier leaders only if there is no other
// explanation for its barriers.
func TestForeign(t *testing.T) {
	many := slices.Repeat([]int64{9}, maxEarlier)
	for name, c := range map[string]struct {
		change func(s *State)
		want   bool
	}{
		"none of theirs":                        {func(*State) {}, true},
		"one of theirs":                         {func(s *State) { s.barrier(4) }, false},
		"only one of a leader that did nothing": {func(s *State) { s.barrier(6) }, true},
		"its beginning was deleted":             {func(s *State) { s.First[sched] = 3 }, false},
		"no leader did anything":                {func(s *State) { s.LastLed = -1 }, false},
		"recreated since":                       {func(s *State) { s.Recreated[sched] = 8 }, false},
		"recreated before they led":             {func(s *State) { s.Recreated[sched] = 5 }, true},
		"theirs was of the one before that":     {func(s *State) { s.Recreated[sched] = 5; s.barrier(4) }, true},
		"more than are remembered":              {func(s *State) { s.barrier(many...) }, false},
		"the newest is yet to be read":          {func(s *State) { s.Epoch = 12 }, false},
		"no barrier":                            {func(s *State) { delete(s.Barriers, sched) }, false},
		"no barrier below low water":            {func(s *State) { s.barrier(4); s.LowWater[sched], s.FirstBarrier[sched] = 20, 20 }, true},
		"a barrier below low water":             {func(s *State) { s.barrier(4); s.LowWater[sched], s.FirstBarrier[sched] = 20, 19 }, false},
	} {
		s := newState()
		s.Epoch, s.LastLed, s.First[sched] = 10, 5, 1
		s.barrier()
		c.change(&s)
		require.Equal(t, c.want, s.Foreign(sched, 1), name)
	}
}

// barrier sets the stream's barrier of this epoch, behind those of earlier epochs.
func (s *State) barrier(earlier ...int64) {
	s.Barriers[sched] = Barrier{Epoch: s.Epoch, Offset: 30, Earlier: earlier}
}

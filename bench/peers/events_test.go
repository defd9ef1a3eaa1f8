package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const second = time.Second

// parsed returns events of lines whose times are in seconds.
func parsed(t *testing.T, lines ...string) []event {
	all, err := parseEvents(strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	for i := range all {
		all[i].at *= second
	}
	return all
}

func TestCountKnowsTheGapsAndTheMostAtOnce(t *testing.T) {
	c := count(parsed(t, "b 1 7 100 1", "b 2 7 100 2", "b 3 8 100 2", "e 1 7 100 3", "b 4 7 200 5", "e 2 7 100 6", "e 4 7 200 9"), 2, nil)
	require.Equal(t, 2, c.most)
	require.Equal(t, []time.Duration{2 * second}, c.gaps)
	require.Equal(t, map[int]int{1: 1, 2: 1, 4: 1}, c.ends)
	require.Equal(t, [2]time.Duration{second, 9 * second}, [2]time.Duration{c.first, c.last})
}

func TestCountNoticesThatALimitIsExceeded(t *testing.T) {
	c := count(parsed(t, "b 1 7 100 1", "b 2 7 200 2", "b 3 7 200 3"), 2, nil)
	require.Equal(t, 3, c.most)
}

// Of the two slots that the killed process had, one has a job again after four seconds. The other
// jobs of the key, which runs on, do not count as that.
func TestCountSaysHowLongSlotsOfAKilledProcessAreStuck(t *testing.T) {
	all := parsed(t, "b 1 7 100 1", "b 2 7 100 1", "b 3 7 200 1", "e 3 7 200 4", "b 4 7 200 5", "b 1 7 200 7", "e 4 7 200 8", "b 5 7 200 9", "e 1 7 200 10")
	c := count(all, 3, &died{100, 3 * second})
	require.Equal(t, map[int]bool{1: true, 2: true}, c.running)
	require.Equal(t, []time.Duration{4 * second}, c.stuck)
	require.Equal(t, 1, c.unfilled)
	require.Equal(t, 3, c.most)
}

func TestCountBuriesWhatRanAtTheEnd(t *testing.T) {
	c := count(parsed(t, "b 1 7 100 1"), 3, &died{100, 3 * second})
	require.Equal(t, map[int]bool{1: true}, c.running)
	require.Equal(t, 1, c.unfilled)
}

func TestSecondsAreCountedFromTheFirstJobAndAnywhere(t *testing.T) {
	all := parsed(t, "b 1 0 1 10", "b 2 0 1 11", "b 3 0 1 12")
	for i := range all {
		all = append(all, event{begins: true, at: all[i].at + second/2})
	}
	all = append(all[:3:3], event{begins: true, at: 12*second + second/2})
	whole, most := perSecondOf(all, 3)
	require.Equal(t, []int{1, 2, 0}, whole)
	require.Equal(t, 2, most)
}

package occupancy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

func TestPartsOfALimit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	def := wire.Limit{Queues: []string{"imports"}, Per: []string{wire.PerKey}, Concurrency: 2, Rate: &wire.Rate{Jobs: 1, Seconds: 60},
		Overrides: map[string]wire.Bound{"big": {Concurrency: 5}}}
	opens := wire.Seconds(now) + 30
	c := occupancy.New(now, map[string]int64{wire.RateID("each", def.Rate, wire.Group{Key: "late"}): int64(opens*1e6) + def.Rate.Ahead()})
	group := func(queue, class, key string) wire.Group { return wire.Group{Queue: queue, Class: class, Key: key} }
	hold := func(jid string, at float64, g wire.Group) { c.Hold(&wire.HeldSlot{JID: jid, At: at, Group: g}) }
	c.Wait(group("imports", "A", "full"), 2)
	c.Wait(group("imports", "B", "full"), 1)
	c.Wait(group("imports", "A", "late"), 2)
	c.Wait(group("imports", "A", "big"), 1)
	c.Wait(group("other", "A", "full"), 7)
	hold("old", 10, group("imports", "A", "full"))
	hold("new", 20, group("imports", "B", "full"))
	hold("more", 5, group("imports", "A", "big"))
	hold("elsewhere", 1, group("other", "A", "full"))

	l := c.Of("each", def)
	require.Equal(t, []int{3, 6, 5, 1, 9}, []int{l.Used, l.Waiting, l.Blocked, l.Full, int(l.Slots)})
	require.Len(t, l.Parts, 3)
	full := l.Parts[0]
	require.Equal(t, "full", full.Key)
	require.True(t, full.Full())
	require.Equal(t, []any{2, "old", 20.0}, []any{full.Used.Slots, full.Used.Oldest.JID, full.Used.Newest})
	require.InDelta(t, opens, l.Parts[1].Opens, 1e-3)
	require.EqualValues(t, 5, l.Parts[2].Concurrency)
	require.Equal(t, 13, c.Waiting)

	def.Paused = true
	require.Equal(t, 6, c.Of("each", def).Blocked)
	none := occupancy.New(now, nil).Of("one", wire.Limit{Concurrency: 4})
	require.EqualValues(t, 4, none.Slots, "a limit that is not per anything has its slots also without jobs")
	require.Empty(t, none.Parts)
}

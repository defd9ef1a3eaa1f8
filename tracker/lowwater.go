package tracker

import (
	"cmp"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// lowWater forgets parts of entry streams: those that are settled, and those that are gone. It also
// ends that entries are held.
type lowWater struct {
	state     *leadership
	entries   *entryTable
	awaited   awaited
	announced *announcements
	rejects   *rejects
}

// move forgets everything below an offset of each stream. It is settled, also if the journal says
// more of it later.
func (t lowWater) move(tx *view.Tx, water map[string]int64) error {
	for _, stream := range slices.Sorted(maps.Keys(water)) {
		c, below := codes[stream], water[stream]
		if c == 0 || below <= t.state.peek().LowWater[stream] {
			continue
		}
		t.state.update(func(s *State) { s.LowWater[stream] = below })
		if err := t.entries.dropBetween(tx, entryID{c, minOffset}, entryID{c, below}); err != nil {
			return err
		}
		if err := t.announced.forgetBelow(tx, entryID{c, below}); err != nil {
			return err
		}
	}
	return nil
}

// dropAged removes what a journal that is gone said of entries that were not read. The leader that
// moves low water has left barriers behind them, so if there were such entries, they are settled
// now.
func (t lowWater) dropAged(tx *view.Tx) error {
	if t.state.peek().Journals == 0 {
		return nil
	}
	return t.entries.eachUnread(tx, func(id entryID, m *mark) error {
		if m.epoch >= 0 {
			return nil
		}
		return tx.Delete(keyMark(id))
	})
}

// release lets what was held fire, except entries up to an offset of each stream.
func (t lowWater) release(held map[string]int64) {
	t.state.update(func(s *State) {
		s.Held = map[string]int64{}
		maps.Copy(s.Held, held)
		if len(held) == 0 {
			s.Why = ""
		}
	})
	t.entries.arrivals.readyAll()
}

// recreate forgets a stream and everything that was said of it, and makes the view read it again.
// What is below an offset is settled.
func (t lowWater) recreate(tx *view.Tx, stream string, below int64) error {
	c := codes[stream]
	if c == 0 {
		return nil
	}
	dropped := t.entries.dropBetween(tx, entryID{c, minOffset}, entryID{c, noOffset})
	if err := cmp.Or(dropped, t.announced.forgetBelow(tx, entryID{c, noOffset}), t.rejects.forget(tx, stream)); err != nil {
		return err
	}
	t.awaited[c] = noOffset
	t.state.update(func(s *State) {
		delete(s.LowWater, stream)
		if below > 0 {
			s.LowWater[stream] = below
		}
		delete(s.Barriers, stream)
		delete(s.First, stream)
		delete(s.FirstBarrier, stream)
		s.Recreated[stream] = s.Epoch
		if s.Held[stream] != wire.Everything { // a journal that is gone may have said what was done in this one too
			delete(s.Held, stream)
		}
		delete(s.Void, stream)
	})
	return tx.Rewind(stream)
}

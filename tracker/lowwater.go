package tracker

import (
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// lowWater forgets everything below an offset of each stream: it is settled, whatever the journal still says of it.
func (t *Entries) lowWater(tx *view.Tx, water map[string]int64) error {
	for _, stream := range slices.Sorted(maps.Keys(water)) {
		c, below := codes[stream], water[stream]
		if c == 0 || below <= t.peek().LowWater[stream] {
			continue
		}
		t.update(func(s *State) { s.LowWater[stream] = below })
		if err := t.dropWhere(tx, place{c, minOffset}, place{c, below}); err != nil {
			return err
		}
		if err := tx.DeleteRange(keyTelling(place{c, minOffset}), keyTelling(place{c, below})); err != nil {
			return err
		}
	}
	return nil
}

// settleEarlier forgets the doubts of earlier epochs. Whoever moves low water has settled all of them; a view that still has some was
// overtaken by retention, and has not read it. A leader can settle no late fire that it had not read: readTo is how far it had read the
// journal, 0 if it does not say.
func (t *Entries) settleEarlier(tx *view.Tx, epoch, readTo int64) error {
	for _, d := range t.doubts.between(fired{minOffset, minOffset}, fired{epoch, 0}) {
		if d.returned || readTo > 0 && d.late >= readTo {
			continue
		}
		if err := t.settleDoubt(tx, d); err != nil {
			return err
		}
	}
	return nil
}

// release lets what was held fire, but for what stands at or below an offset of its stream.
func (t *Entries) release(held map[string]int64) {
	t.update(func(s *State) {
		s.Held = map[string]int64{}
		maps.Copy(s.Held, held)
		if len(held) == 0 {
			s.Why = ""
		}
	})
	t.readyAll()
}

// recreate forgets a stream and everything that was said of it, and has it read anew; but for what stands below an offset: that is settled.
func (t *Entries) recreate(tx *view.Tx, stream string, below int64) error {
	c := codes[stream]
	if c == 0 {
		return nil
	}
	if err := t.dropWhere(tx, place{c, minOffset}, place{c, noOffset}); err != nil {
		return err
	}
	if err := tx.DeleteRange([]byte{tableTelling, byte(c)}, after([]byte{tableTelling, byte(c)})); err != nil {
		return err
	}
	if err := forgetRejects(tx, stream); err != nil {
		return err
	}
	t.waiting[c] = noOffset
	t.update(func(s *State) {
		delete(s.LowWater, stream)
		if below > 0 {
			s.LowWater[stream] = below
		}
		delete(s.Barriers, stream)
		delete(s.First, stream)
		delete(s.FirstBarrier, stream)
		s.Recreated[stream] = s.Epoch
		if s.Held[stream] != wire.Everything { // a journal that is gone may have told what was done in this one too
			delete(s.Held, stream)
		}
		delete(s.Rejected, stream)
		delete(s.Void, stream)
	})
	return tx.Rewind(stream)
}

// dropWhere drops every entry and mark from one place up to another of the same stream.
func (t *Entries) dropWhere(tx *view.Tx, from, to place) error {
	for _, key := range []func(place) []byte{keyEntry, keyMark} {
		var places []place
		err := tx.Scan(key(from), key(to), false, func(k, _ []byte) bool {
			places = append(places, placeOf(k[1:]))
			return true
		})
		if err != nil {
			return err
		}
		for _, p := range places {
			if err := t.drop(tx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

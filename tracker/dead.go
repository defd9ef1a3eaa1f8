package tracker

import (
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Dead jobs are of two kinds, each with a bound of its own: those that failed, or that a person killed, and those that a queue dropped,
// which may be any number in an instant and must not push the others out.

func keyDead(s *Stored) []byte {
	return appendInt(appendInt(keyDeads(s.Dropped), s.At.UnixMicro()), s.Offset)
}

func keyDeads(dropped bool) []byte {
	if dropped {
		return []byte{tableDead, 1}
	}
	return []byte{tableDead, 0}
}

// Dead counts the dead jobs of a kind.
func (t *Entries) Dead(dropped bool) int64 {
	drops := t.counts.of(codes[wire.DeadJobs], countDropped, "")
	if dropped {
		return drops
	}
	return t.Total(wire.DeadJobs) - drops
}

// OldestDead calls fn for the dead jobs of a kind, those that died first before the others, until fn returns false.
func (t *Entries) OldestDead(dropped bool, fn func(at time.Time, offset int64) bool) error {
	prefix := keyDeads(dropped)
	return t.store.Scan(prefix, after(prefix), false, func(key, _ []byte) bool {
		return fn(time.UnixMicro(intOf(key[len(prefix):])), intOf(key[len(prefix)+intLen:]))
	})
}

// trimmed settles the entries that the leader gave up because there were too many, or they were too old.
func (t *Entries) trimmed(tx *view.Tx, j *wire.JournalRecord) error {
	c := codes[j.Stream]
	if c == 0 {
		return nil
	}
	t.update(func(s *State) { s.Trimmed += int64(len(j.Entries)) })
	for _, e := range j.Entries {
		if err := t.settleAt(tx, place{c, e.Offset}, e.JID); err != nil {
			return err
		}
	}
	return nil
}

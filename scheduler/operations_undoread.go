package scheduler

import (
	"slices"

	"github.com/millrace-jobs/millrace/wire"
)

// recordFilter passes the records that are in force, as views do.
type recordFilter struct {
	trusts func(*wire.Record) bool
	epoch  int64
}

// record parses a record of one of some types. ok is false for all others, and for records of a
// leader that had been followed.
func (s *recordFilter) record(r *wire.Record, types ...string) (j wire.JournalRecord, ok bool) {
	if r.Fault != "" || !s.trusts(r) {
		return j, false
	}
	epoch := wire.HeaderInt(r.Headers, wire.HeaderEpoch)
	if _, dispatched := wire.DispatchOf(r.Headers); dispatched {
		s.epoch = max(s.epoch, epoch)
		return j, false
	}
	what := wire.JournalType(r.Body)
	if what == wire.TypeOpened {
		s.epoch = r.Offset
		return j, false
	}
	void := epoch < s.epoch
	s.epoch = max(s.epoch, epoch)
	if void || !slices.Contains(types, what) {
		return j, false
	}
	j, err := wire.ParseJournal(r.Body)
	return j, err == nil && j.Type == what
}

// survey finds what was undone since an operation began: by a user, one by one, or by an earlier
// leader that undid the operation, behind its cursor.
type survey struct {
	recordFilter
	id     string // of the undo
	stream string
	cursor int64 // of the undo
	to     int64 // the last record that is read

	back      offsets // where entries had stood that came back
	mine      offsets // the records that the undo has undone
	recreated int64   // where the journal last says that the stream was declared again, 0 if nowhere
	begun     int64   // the epoch at the cursor
}

func (s *survey) take(r *wire.Record) error {
	j, ok := s.record(r, wire.TypeUndone, wire.TypeRecreated)
	if r.Offset <= s.cursor {
		s.begun = s.epoch
	}
	switch {
	case !ok || j.Stream != s.stream:
	case j.Type == wire.TypeRecreated:
		s.recreated, s.back, s.mine = r.Offset, offsets{}, offsets{}
	default:
		s.back.add(j.Offset)
		if j.InOperation == s.id {
			s.mine.add(j.Undoes)
		}
	}
	if r.Offset >= s.to {
		return errRead
	}
	return nil
}

// effect is a record of what an operation did to one entry.
type effect struct {
	at     int64
	record wire.JournalRecord
}

// chunk reads the next effects of an operation, not more than fit into memory.
type chunk struct {
	recordFilter
	id      string // of the operation that is undone
	next    int64  // up to here they were read
	through int64
	most    int

	effects []effect
	bytes   int
	end     bool
}

// maxChunk is how many bytes of records a chunk may have.
const maxChunk = 4 << 20

func (k *chunk) take(r *wire.Record) error {
	if r.Offset > k.through {
		k.end = true
		return errRead
	}
	if r.Offset <= k.next {
		return nil
	}
	j, ok := k.record(r, wire.TypeDeleted, wire.TypeKilled, wire.TypeChanged)
	k.next = r.Offset
	if ok && j.InOperation == k.id {
		k.effects = append(k.effects, effect{r.Offset, j})
		k.bytes += len(r.Body)
	}
	k.end = k.next >= k.through
	if k.end || len(k.effects) >= k.most || k.bytes >= maxChunk {
		return errRead
	}
	return nil
}

// offsets is a set of offsets, a bit each. Those that stand together share a page of 4 KiB, so a
// million take little memory.
type offsets map[int64]*[512]uint64

func (o offsets) add(at int64) {
	page := o[at>>15]
	if page == nil {
		page = new([512]uint64)
		o[at>>15] = page
	}
	page[at>>6&511] |= 1 << (at & 63)
}

func (o offsets) has(at int64) bool {
	page := o[at>>15]
	return page != nil && page[at>>6&511]&(1<<(at&63)) != 0
}

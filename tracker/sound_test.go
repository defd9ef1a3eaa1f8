package tracker

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// requireSound checks that the tables of a view agree with each other.
func requireSound(t require.TestingT, o *one) {
	counted := map[countKey]int64{}
	entries, listed, fire := 0, 0, 0
	require.NoError(t, o.store.Scan([]byte{tableEntry}, table.After([]byte{tableEntry}), false, func(key, value []byte) bool {
		entries++
		s, err := decodeStored(entryIDOf(key[1:]), slices.Clone(value))
		require.NoError(t, err)
		m, err := markAt(o.store, s.id())
		require.NoError(t, err)
		pending, err := o.Pending(s)
		require.NoError(t, err)
		require.Equal(t, m == nil, pending, "%+v %+v", s, m)
		if m != nil {
			require.Equal(t, inDoubt, m.state)
			return true
		}
		listed++
		for _, k := range []countKey{{codes[s.Stream], countTotal, ""}, {codes[s.Stream], countQueue, s.Queue}, {codes[s.Stream], countClass, s.Class}} {
			counted[k]++
		}
		counted[countKey{codes[s.Stream], countBytes, ""}] += s.Size
		if exchange, known := s.Exchange(); known {
			counted[countKey{codes[s.Stream], countExchange, exchange}]++
		}
		if s.Raw != nil {
			require.Len(t, s.Raw, int(s.Size))
		}
		_, found, err := o.store.Get(keyJID(s.id(), s.tag()))
		require.NoError(t, err)
		require.True(t, found)
		_, mayFire, err := o.store.Get(keyDue(o.rules().apply(s)))
		require.NoError(t, err)
		require.Equal(t, fires(s), mayFire)
		if mayFire {
			fire++
		}
		return true
	}))
	require.Equal(t, []int{listed, listed, fire}, []int{o.table(tableList), o.table(tableJID), o.table(tableFire) + o.table(tableGroup) + o.table(tableUndecided)})
	requireHolds(t, o)
	require.Equal(t, counted, o.Counts.n)
	again, err := loadCounts(o.store)
	require.NoError(t, err)
	require.Equal(t, counted, again, "the store and the memory agree")
	past := o.Entries.fold.outcomes
	requireMarks(t, o)
	requireMemory(t, o)
	requireRejects(t, o)
	for index, rows := range map[byte]byte{tableOutcomes: tableOutcome, tableCommands: tableCommand} {
		size, err := table.ReadSize(o.store, index)
		require.NoError(t, err)
		kept := map[byte]*table.Bounded{tableOutcomes: &past.entries, tableCommands: &past.commands}[index]
		require.Equal(t, size, kept.Size, "the store and the memory agree")
		require.Equal(t, []int{int(size.Count), int(size.Count)}, []int{o.table(index), o.table(rows)})
	}
}

func (o *one) rules() *gateRules { return &o.Governed.rules }

// requireBytes checks that the counted bytes are those of the pending entries' records.
func requireBytes(t require.TestingT, h *history, o *one) {
	for _, stream := range wire.EntryStreams {
		var want int64
		pending := map[int64]bool{}
		require.NoError(t, o.List(stream, Cursor{}, func(r Row) bool {
			pending[r.Offset] = true
			return true
		}))
		for _, r := range h.of(stream, h.gen[stream]) {
			if pending[r.Offset] {
				want += int64(len(r.Body))
			}
		}
		require.Equal(t, want, o.Bytes(stream), stream)
	}
}

// requireMemory checks that the copies in memory, which save reads of the store, agree with the
// store.
func requireMemory(t require.TestingT, o *one) {
	memory := o.Entries.fold
	all, err := loadDoubts(o.store)
	require.NoError(t, err)
	require.Equal(t, append(doubts{}, all...), append(doubts{}, memory.entries.doubts...))
	read := &outcomes{}
	require.NoError(t, read.load(o.store))
	require.Equal(t, read.entries.Ages(), memory.outcomes.entries.Ages())
	require.Equal(t, read.commands.Ages(), memory.outcomes.commands.Ages())
	known := ends{}
	require.NoError(t, known.load(o.store))
	for source := range known {
		require.Equal(t, known[source].Ages(), memory.slots.ends[source].Ages())
		require.Len(t, known[source].Ages(), int(known[source].Count))
	}
	requireRecent(t, o)
	announced := newAnnouncements(&firstAnnounced{at: map[code]int64{}})
	require.NoError(t, announced.load(o.store))
	require.Equal(t, announced.first, memory.announced.first)
	require.Equal(t, announced.first, o.Announcements.first.at)
	highest, err := loadMaxOffsets(o.store)
	require.NoError(t, err)
	for rows, streams := range highest {
		for stream, top := range streams {
			require.GreaterOrEqual(t, memory.entries.maxOffsets[rows][stream], top)
		}
	}
}

// requireRecent checks that recent has pending entries only, as the store has them.
func requireRecent(t require.TestingT, o *one) {
	for c, all := range o.Entries.fold.entries.recent.streams {
		for i := range all {
			if all[i].at.IsZero() {
				continue
			}
			got := o.Entries.fold.entries.recent.get(entryID{c, all[i].offset})
			want, err := storedAt(o.store, got.id())
			require.NoError(t, err)
			require.NotNil(t, want)
			pending, err := o.Pending(want)
			require.NoError(t, err)
			require.True(t, pending && fires(want))
			require.Equal(t, []any{want.At, want.JID, want.Queue, want.Class, want.Leased, want.Size}, []any{got.At, got.JID, got.Queue, got.Class, got.Leased, got.Size})
			_, known := want.Exchange()
			require.False(t, known)
		}
	}
}

// requireMarks checks that the only marks without an entry are those that may still be needed.
func requireMarks(t require.TestingT, o *one) {
	all, err := o.Doubts()
	require.NoError(t, err)
	n := 0
	require.NoError(t, o.store.Scan([]byte{tableMark}, table.After([]byte{tableMark}), false, func(key, value []byte) bool {
		m, err := decodeMark(slices.Clone(value))
		require.NoError(t, err)
		p := entryIDOf(key[1:])
		switch m.state {
		case inDoubt:
			n++
			return true
		case replaced:
			return true
		}
		read, err := o.Position(p.name())
		require.NoError(t, err)
		require.Greater(t, p.offset, read, "a mark for an offset that was read already: %v %+v", p, m)
		return true
	}))
	require.Len(t, all, n)
}

func requireRejects(t require.TestingT, o *one) {
	for stream := range o.State().Rejected {
		var have rejectSize
		require.NoError(t, o.store.Scan(keyRejects(stream), table.After(keyRejects(stream)), false, func(_, value []byte) bool {
			have.count++
			have.bytes += int64(len(value))
			return true
		}))
		size, err := readRejectSize(o.store, stream)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(have.count, have.bytes), fmt.Sprint(size.count, size.bytes), stream)
	}
}

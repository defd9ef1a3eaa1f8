package view

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// crashing is a view with a process that may die at any record.
type crashing struct {
	t      *testing.T
	source *memory
	dir    string
	store  *Store
	copies int
}

func (c *crashing) open() { c.store = openStore(c.t, Config{Dir: c.dir, Identity: "x"}) }

// crash continues with the files as they are now, without the data in memory.
func (c *crashing) crash(t *rapid.T) {
	next := ""
	// Old files may be deleted while they are copied.
	for err := os.ErrNotExist; errors.Is(err, os.ErrNotExist); {
		c.copies++
		next = filepath.Join(c.t.TempDir(), fmt.Sprint(c.copies))
		err = os.CopyFS(next, os.DirFS(c.dir))
		require.True(t, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
	}
	require.NoError(t, c.store.Close())
	c.dir = next
	c.open()
}

// read folds each stream up to some offset.
func (c *crashing) read(t *rapid.T) {
	c.source.upTo = map[string]int64{}
	want := map[string]int64{}
	for _, stream := range []string{journal, jobs} {
		at, err := c.store.Position(stream)
		require.NoError(t, err)
		end := int64(len(c.source.streams[stream].records) - 1)
		c.source.upTo[stream] = rapid.Int64Range(at, end).Draw(t, "up to")
		want[stream] = c.source.upTo[stream]
	}
	c.source.batch = rapid.IntRange(1, 4).Draw(t, "batch")
	c.follow(t, want)
}

func (c *crashing) follow(t *rapid.T, want map[string]int64) {
	v := follow(c.t, c.store, c.source, &counting{}, journal, jobs)
	v.until(t, "it is read", func() bool {
		for stream, offset := range want {
			at, err := c.store.Position(stream)
			require.NoError(t, err)
			if at != offset {
				return false
			}
		}
		return true
	})
	require.NoError(t, v.stop())
}

// requireOnce checks that each record up to the position was folded once, and that no other was.
func (c *crashing) requireOnce(t *rapid.T) {
	var total uint64
	for _, stream := range []string{journal, jobs} {
		at, err := c.store.Position(stream)
		require.NoError(t, err)
		all := folded(t, c.store, stream)
		require.Len(t, all, int(at+1))
		for i, line := range all {
			require.Contains(t, line, fmt.Sprintf("%s×1", c.source.streams[stream].records[i].Body))
		}
		total += uint64(len(all))
	}
	raw, _, err := c.store.Get([]byte("total"))
	require.NoError(t, err)
	if len(raw) > 0 {
		require.Equal(t, byte(total), raw[7])
	}
}

// few makes rapid run only n checks by default, for checks that open stores on disk. -rapid.checks
// still applies.
func few(t *testing.T, n int) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	require.NoError(t, checks.Value.Set(fmt.Sprint(n)))
	t.Cleanup(func() { require.NoError(t, checks.Value.Set(checks.DefValue)) })
}

func TestCrashedViewFoldsEachRecordOnce(t *testing.T) {
	few(t, 20)
	rapid.Check(t, func(rt *rapid.T) {
		c := &crashing{t: t, source: newMemory(journal, jobs), dir: t.TempDir()}
		c.open()
		defer func() { require.NoError(rt, c.store.Close()) }()
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			for _, stream := range []string{journal, jobs} {
				for range rapid.IntRange(0, 5).Draw(rt, "records") {
					c.source.append(stream, fmt.Sprint(rapid.IntRange(0, 9).Draw(rt, "body")))
				}
			}
			c.read(rt)
			c.requireOnce(rt)
			switch rapid.IntRange(0, 3).Draw(rt, "then") {
			case 0:
				require.NoError(rt, c.store.Flush())
				fallthrough
			case 1:
				c.crash(rt)
			case 2:
				require.NoError(rt, c.store.Close())
				c.open()
			}
			c.requireOnce(rt)
		}
		c.source.upTo = nil
		c.follow(rt, map[string]int64{journal: c.source.streams[journal].next - 1, jobs: c.source.streams[jobs].next - 1})
		c.requireOnce(rt)
	})
}

// A reader that begins while a rewind is being written does not continue where the old reader
// stopped.
func TestReaderThatBeginsDuringRewind(t *testing.T) {
	store := memoryStore(t)
	v := New(store, newMemory(journal, jobs), &counting{}, logTo(t), journal, jobs)
	of := v.streams[1]
	require.NoError(t, store.Update(func(tx *Tx) error { return tx.setPosition(jobs, position{41, 1}) }))
	type begun struct {
		generation int
		at         position
		err        error
	}
	result := make(chan begun, 1)
	require.NoError(t, store.Update(func(tx *Tx) error {
		if err := tx.Rewind(jobs); err != nil {
			return err
		}
		v.rewind(tx.rewound)
		go func() {
			generation, at, err := of.begin(func(error) {})
			result <- begun{generation, at, err}
		}()
		select {
		case b := <-result:
			require.Fail(t, "it did not wait", "%+v", b)
		case <-time.After(20 * time.Millisecond):
		}
		return nil
	}))
	require.Equal(t, begun{1, position{offset: none}, nil}, <-result)
}

// After a rewind, everything that an older reader delivers or records is ignored.
func TestRewindEndsOldReaders(t *testing.T) {
	store := memoryStore(t)
	v := New(store, newMemory(journal, jobs), &counting{}, logTo(t), journal, jobs)
	of := v.streams[1]
	stopped := false
	generation, at, err := of.begin(func(error) { stopped = true })
	require.NoError(t, err)
	require.True(t, of.storeTarget(generation, at, at.offset, 2))
	records := []wire.Record{{Stream: jobs, Offset: 2, Body: []byte("old")}}
	require.NoError(t, v.apply(of, generation, records))
	require.True(t, of.caughtUp())

	require.NoError(t, store.Apply(v.fold, journal, []wire.Record{{Stream: journal, Body: []byte("rewind jobs")}}, func() error { return nil }, v.rewind))
	require.True(t, stopped)
	require.ErrorIs(t, v.apply(of, generation, records), errRewound)
	require.ErrorIs(t, of.setTarget(t.Context(), generation, at, at.offset), errRewound)
	require.ErrorIs(t, of.ended(t.Context(), generation, errMismatch), errRewound)
	of.folded(generation, records)
	require.False(t, of.identityConfirmed(generation))
	require.False(t, of.caughtUp())
	require.False(t, of.isRecreated())
	require.Empty(t, folded(t, store, jobs))
	require.Equal(t, int64(none), of.status(time.Now()).Position)
}

// If streams are rewound again and again while records flow, each record is folded once in the end.
func TestRewindsUnderLoad(t *testing.T) {
	source := newMemory(journal, jobs)
	source.batch = 20
	store := memoryStore(t)
	v := follow(t, store, source, &counting{}, journal, jobs)
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	for i := 0; ctx.Err() == nil; i++ {
		source.append(jobs, "x")
		if i%7 == 0 {
			source.append(journal, "rewind jobs")
		}
		_ = pause.For(ctx, time.Duration(i%5)*time.Millisecond)
	}
	v.until(t, "all is folded", func() bool {
		return v.CaughtUp(journal, jobs) && len(folded(t, store, jobs)) == len(source.streams[jobs].records)
	})
	require.NoError(t, v.stop())
	for _, line := range folded(t, store, jobs) {
		require.Contains(t, line, "x×1")
	}
}

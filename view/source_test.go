package view

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// memory is a Source over slices. Like RabbitMQ, it sends nothing to a reader that starts behind
// the end, and begins at the first record if retention has deleted the offset that a reader asks
// for.
type memory struct {
	mu       sync.Mutex
	streams  map[string]*memoryStream
	changed  chan struct{}
	batch    int // records in a delivery; default 3
	pass     func(records []wire.Record)
	upTo     map[string]int64 // readers get no further: their replica lags
	lacks    map[string]int64 // readers get nothing below: their replica has deleted it already
	hidden   map[string]bool  // streams that answer as if they were empty, as after a failover
	short    map[string]int   // newest records that are not shown yet, as after a failover
	once     bool             // readers end with errRead at the end
	lastErr  error
	costly   bool // asking for the last record is costly
	readErr  error
	fetchErr error
	reads    int
	lasts    int
	moved    []string // streams with readers that moved to another node
	others   bool     // replicas on other nodes do not lag
}

type memoryStream struct {
	generation int
	next       int64
	records    []wire.Record
}

func newMemory(streams ...string) *memory {
	m := &memory{streams: map[string]*memoryStream{}, changed: make(chan struct{})}
	for _, name := range streams {
		m.streams[name] = &memoryStream{}
	}
	return m
}

// change changes the streams, and wakes the goroutines that wait for a change.
func (m *memory) change(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *memory) append(stream string, bodies ...string) {
	m.change(func() {
		s := m.streams[stream]
		for _, body := range bodies {
			s.records = append(s.records, wire.Record{Stream: stream, Offset: s.next, UserID: "u", Body: []byte(body)})
			s.next++
		}
	})
}

// hole leaves the next n offsets without records.
func (m *memory) hole(stream string, n int64) { m.change(func() { m.streams[stream].next += n }) }

// fault appends a record that the transport cannot read.
func (m *memory) fault(stream string, n int64) {
	m.change(func() {
		s := m.streams[stream]
		s.records = append(s.records, wire.Record{Stream: stream, Offset: s.next, Through: s.next + n - 1, Fault: "unreadable"})
		s.next += n
	})
}

// forget deletes the first n records, like retention.
func (m *memory) forget(stream string, n int) {
	m.change(func() { m.streams[stream].records = slices.Clone(m.streams[stream].records[n:]) })
}

// lose deletes the last n records, like a power failure. Their offsets are used again.
func (m *memory) lose(stream string, n int) {
	m.change(func() {
		old := m.streams[stream]
		s := &memoryStream{generation: old.generation + 1, next: old.next, records: slices.Clone(old.records[:len(old.records)-n])}
		if n > 0 {
			s.next = old.records[len(old.records)-n].Offset
		}
		m.streams[stream] = s
	})
}

// recreate deletes a stream and creates it again.
func (m *memory) recreate(stream, user string, bodies ...string) {
	m.change(func() {
		s := &memoryStream{generation: m.streams[stream].generation + 1}
		m.streams[stream] = s
		for _, body := range bodies {
			s.records = append(s.records, wire.Record{Stream: stream, Offset: s.next, UserID: user, Body: []byte(body)})
			s.next++
		}
	})
}

// shown returns the records that a stream shows.
func (m *memory) shown(stream string) []wire.Record {
	all := m.streams[stream].records
	if m.hidden[stream] {
		return nil
	}
	return all[:max(0, len(all)-m.short[stream])]
}

// count returns how many records a stream has.
func (m *memory) count(stream string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.streams[stream].records)
}

func (m *memory) Last(_ context.Context, stream string) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lasts++
	all := m.shown(stream)
	if m.lastErr != nil || len(all) == 0 {
		return 0, false, m.lastErr
	}
	last := all[len(all)-1]
	return max(last.Offset, last.Through), true, nil
}

// asked returns how often the last record was asked for.
func (m *memory) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lasts
}

func (m *memory) movedReaders() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.moved)
}

func (m *memory) LastIsCheap() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.costly
}

func (m *memory) First(_ context.Context, stream string) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.shown(stream)
	if m.lastErr != nil || len(all) == 0 {
		return 0, false, m.lastErr
	}
	return all[0].Offset, true, nil
}

func (m *memory) Fetch(_ context.Context, stream string, offset int64) (wire.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.shown(stream) {
		if r.Offset <= offset && offset <= max(r.Offset, r.Through) {
			return r, m.fetchErr
		}
	}
	return wire.Record{}, errors.Join(streams.ErrNotFound, m.fetchErr)
}

func (m *memory) Next(_ context.Context, stream string, offset int64) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.shown(stream) {
		if max(r.Offset, r.Through) >= offset {
			return max(r.Offset, offset), m.fetchErr
		}
	}
	return 0, errors.Join(streams.ErrNotFound, m.fetchErr)
}

var errRead = errors.New("there is no more")

var errDeleted = errors.New("stream deleted under its reader")

func (m *memory) Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	m.mu.Lock()
	m.reads++
	generation := m.streams[stream].generation
	m.mu.Unlock()
	for ctx.Err() == nil {
		records, changed, err := m.take(stream, generation, from)
		if err != nil {
			return err
		}
		if len(records) == 0 && m.once {
			return errRead
		}
		if len(records) == 0 {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		if err := deliver(records); err != nil {
			return err
		}
		last := records[len(records)-1]
		from = max(last.Offset, last.Through) + 1
	}
	if errors.Is(context.Cause(ctx), streams.ErrMoved) {
		m.change(func() {
			m.moved = append(m.moved, stream)
			if m.others {
				delete(m.upTo, stream)
			}
		})
	}
	return nil
}

func (m *memory) take(stream string, generation int, from int64) ([]wire.Record, chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[stream]
	switch {
	case m.readErr != nil:
		return nil, nil, m.readErr
	case s.generation != generation:
		return nil, nil, errDeleted
	}
	n := m.batch
	if n == 0 {
		n = 3
	}
	var records []wire.Record
	for _, r := range m.shown(stream) {
		limit, limited := m.upTo[stream]
		if max(r.Offset, r.Through) >= from && len(records) < n && (!limited || r.Offset <= limit) && r.Offset >= m.lacks[stream] {
			records = append(records, r)
		}
	}
	if m.pass != nil && len(records) > 0 {
		m.pass(records)
	}
	return records, m.changed, nil
}

// counting is a fold that counts how often each record was folded. Some bodies are commands.
type counting struct {
	forgets   map[string]bool // streams that it forgets by itself
	forgotten []string
	pending   int // records since the last commit
	failing   error
	confirmed map[int64]Mark // of the records of the journal
}

func keyCount(stream string, offset int64) []byte {
	return fmt.Appendf(nil, "n/%s/%08d", stream, offset)
}

func (c *counting) Fold(tx *Tx, r *wire.Record) error {
	c.pending++
	if c.failing != nil {
		return c.failing
	}
	if stream, ok := strings.CutPrefix(string(r.Body), "rewind "); ok {
		if err := c.drop(tx, stream); err != nil {
			return err
		}
		if err := tx.Rewind(stream); err != nil {
			return err
		}
	}
	if r.Stream == journal {
		if err := c.noteConfirmed(tx, r); err != nil {
			return err
		}
	}
	key := keyCount(r.Stream, r.Offset)
	raw, _, err := tx.Get(key)
	if err != nil {
		return err
	}
	n := byte(1)
	if len(raw) > 0 {
		n += raw[0]
	}
	return tx.Set(key, append([]byte{n}, r.Body...))
}

// noteConfirmed executes a record that says which record of the journal is confirmed.
func (c *counting) noteConfirmed(tx *Tx, r *wire.Record) error {
	if c.confirmed == nil {
		c.confirmed = map[int64]Mark{}
	}
	c.confirmed[r.Offset] = MarkOf(r)
	var offset int64
	if n, _ := fmt.Sscanf(string(r.Body), "confirmed %d", &offset); n == 0 {
		return nil
	}
	return tx.Confirmed(journal, c.confirmed[offset])
}

func (c *counting) Commit(tx *Tx) error {
	raw, _, err := tx.Get([]byte("total"))
	if err != nil {
		return err
	}
	total := uint64(c.pending)
	if len(raw) > 0 {
		total += binary.BigEndian.Uint64(raw)
	}
	c.pending = 0
	return tx.Set([]byte("total"), binary.BigEndian.AppendUint64(nil, total))
}

func (c *counting) drop(tx *Tx, stream string) error {
	return tx.DeleteRange([]byte("n/"+stream+"/"), []byte("n/"+stream+"0"))
}

// forgetting is counting with a Forget that decides by itself about some streams.
type forgetting struct {
	counting
	overtaken []string
}

func (f *forgetting) Overtaken(_ *Tx, stream string) error {
	f.overtaken = append(f.overtaken, stream)
	return nil
}

func (f *forgetting) Forget(tx *Tx, stream string) (bool, error) {
	f.forgotten = append(f.forgotten, stream)
	if err := tx.Set(keyForgot(stream), nil); err != nil {
		return false, err
	}
	return f.forgets[stream], f.drop(tx, stream)
}

func keyForgot(stream string) []byte { return []byte("forgot/" + stream) }

// folded returns the folded records of a stream, and how often each was folded.
func folded(t require.TestingT, s *Store, stream string) (all []string) {
	err := s.Scan([]byte("n/"+stream+"/"), []byte("n/"+stream+"0"), false, func(k, v []byte) bool {
		all = append(all, fmt.Sprintf("%s %s×%d", strings.TrimLeft(string(k[len(stream)+3:]), "0"), v[1:], v[0]))
		return true
	})
	require.NoError(t, err)
	return all
}

// following is a view that runs.
type following struct {
	*View
	store *Store
	stop  func() error
	ended func() error // waits until the view ends by itself
}

func follow(t testing.TB, store *Store, source Source, fold Fold, streams ...string) *following {
	t.Helper()
	f := &following{View: New(store, source, fold, logTo(t), streams[0], streams[1:]...), store: store}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	f.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	f.ended = func() error {
		select {
		case err := <-ended:
			ended <- nil
			return err
		case <-time.After(2 * time.Minute):
			require.FailNow(t, "the view does not end")
			return nil
		}
	}
	t.Cleanup(func() { _ = f.stop() })
	return f
}

// until waits for a condition. It checks after every change, and a hundred times a second.
func (f *following) until(t require.TestingT, what string, holds func() bool) {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		changed := f.Changed()
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(t, "not in time: "+what, "%+v", f.Status())
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (f *following) untilFolded(t require.TestingT, stream string, want ...string) {
	f.until(t, fmt.Sprintf("%s is %v", stream, want), func() bool { return slices.Equal(folded(t, f.store, stream), want) })
}

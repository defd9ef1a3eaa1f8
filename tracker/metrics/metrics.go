package metrics

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Metrics is the fold over metrics and their roll-ups. A Reader reads what it found.
type Metrics struct {
	store   *view.Store
	trusted map[string]bool
	now     func() time.Time
	*memory
	segments

	resetting bool          // all streams are read again; the rest of this batch is ignored
	records   []wire.Metric // room for one message
	flushed   time.Time
	pruned    time.Time
}

// memory is what the fold shares with its readers: how far everything is counted, and the data that
// the store does not have yet.
type memory struct {
	mu    sync.Mutex
	state State
	shown State // as it was written last
	sums  sums
	runs  runLog
}

// State is how far everything is counted.
type State struct {
	Generation int64   `json:"generation"` // how often job_metrics was created again
	Through    int64   `json:"through"`    // below this offset everything is counted
	Rolled     int64   `json:"rolled"`     // below this offset everything is in roll-ups
	Raw        bool    `json:"raw"`        // records of this generation were counted themselves
	Segment    segment `json:"piece"`
}

// New returns the fold with the state that the store has. It accepts roll-ups only from trusted
// users. now is time.Now if it is nil. It decides only what is deleted, what is refused because it
// is in the future, and when sums are written.
func New(store *view.Store, now func() time.Time, trusted ...string) (*Metrics, error) {
	if now == nil {
		now = time.Now
	}
	m := &Metrics{store: store, now: now, trusted: map[string]bool{}, memory: &memory{runs: runLog{bounds: RunBounds{}.withDefaults()}}}
	for _, u := range trusted {
		m.trusted[u] = u != ""
	}
	return m, m.Reload()
}

// Keep bounds which runs are kept. It must be called before anything is folded.
func (m *Metrics) Keep(b RunBounds) { m.runs.bounds = b.withDefaults() }

// Reader returns a reader of what was folded.
func (m *Metrics) Reader() *Reader { return &Reader{m.store, m.now, m.memory} }

// Reload implements view.Reloader.
func (m *Metrics) Reload() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.resetting = false
	raw, ok, err := m.store.Get(keyRows(tableState))
	if err != nil {
		return err
	}
	if ok {
		if err := json.Unmarshal(raw, &m.state); err != nil {
			return fmt.Errorf("metrics: state is damaged: %w", err)
		}
	}
	m.shown = m.state
	if err := m.segments.load(m.store); err != nil {
		return err
	}
	if err := m.runs.load(m.store); err != nil {
		return err
	}
	return m.sums.load(m.store)
}

// clear empties the memory.
func (m *Metrics) clear() {
	m.state, m.shown = State{}, State{}
	m.sums, m.segments = newSums(), segments{cells: map[cell]struct{}{}, pendingRollups: map[int64]int64{}}
	m.runs = runLog{bounds: m.runs.bounds}
	m.flushed = time.Time{}
}

// Streams implements tracker.Part.
func (m *Metrics) Streams() []string { return []string{wire.JobMetrics, wire.Rollups} }

// Fold implements tracker.Part.
func (m *Metrics) Fold(tx *view.Tx, r *wire.Record) (string, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resetting {
		return "", nil, nil
	}
	if r.Stream == wire.Rollups {
		return m.foldRollup(tx, r)
	}
	return m.foldMessage(tx, r)
}

// foldMessage folds a message of job_metrics.
func (m *Metrics) foldMessage(tx *view.Tx, r *wire.Record) (string, []byte, error) {
	if r.Offset < m.state.Through {
		return "", nil, nil
	}
	good, bad, err := wire.ParseMetrics(m.records[:0], r.Body)
	if err != nil {
		m.advance(r.Offset)
		return err.Error(), r.Body, nil
	}
	m.records = good
	reason, refused := "", []byte(nil)
	if len(bad) > 0 {
		refused, reason = wire.BadMetrics(bad)
	}
	if late := m.tooLate(r, good); late != "" {
		m.advance(r.Offset)
		return late, r.Body, nil
	}
	if len(good) > 0 {
		if err := m.roll(tx, r.Offset, floor(good[0].At.Unix(), day)); err != nil {
			return "", nil, err
		}
	}
	for i := range good {
		if err := m.add(tx, &good[i]); err != nil {
			return "", nil, err
		}
	}
	m.runs.keep(r.Offset, m.state.Generation, good)
	m.advance(r.Offset)
	return reason, refused, nil
}

// aheadAtMost is how far a worker's clock may be ahead.
const aheadAtMost = 24 * time.Hour

// tooLate returns why a message is refused that has timestamps in the future, or so old that their
// sums are not kept. It would create minutes that no query reads.
func (m *Metrics) tooLate(r *wire.Record, all []wire.Metric) string {
	now := r.Time
	if now.IsZero() {
		now = m.now()
	}
	for i := range all {
		switch at := all[i].At; {
		case at.Sub(now) > aheadAtMost:
			return fmt.Sprintf("member \"timestamp\" is %s: that has not come yet", at.Format(time.RFC3339))
		case now.Sub(at) > 5*365*day*time.Second:
			return fmt.Sprintf("member \"timestamp\" is %s: so old sums are not kept", at.Format(time.RFC3339))
		}
	}
	return ""
}

func (m *Metrics) advance(offset int64) { m.state.Through, m.state.Raw = offset+1, true }

// add counts one record.
func (m *Metrics) add(tx *view.Tx, rec *wire.Metric) error {
	c := cell{floor(rec.At.Unix(), minute), pair{rec.Class, rec.Queue}}
	errorClass := ""
	if rec.Status == wire.MetricFailed || rec.Status == wire.MetricDead {
		errorClass = rec.ErrorClass
	}
	c, err := m.sums.count(tx, c, rec, errorClass)
	if err != nil {
		return err
	}
	m.note(&m.state.Segment, c)
	return nil
}

// Commit implements tracker.Part. It writes the sums about once a second.
func (m *Metrics) Commit(tx *view.Tx) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resetting = false
	if m.state == m.shown && len(m.sums.added) == 0 {
		return nil
	}
	if m.now().Sub(m.flushed) < flushEvery && len(m.sums.added) < maxAdded && len(m.sums.days) < maxDays {
		tx.HoldPosition(wire.JobMetrics)
		return nil
	}
	return m.flush(tx)
}

// Forget implements tracker.Part.
func (m *Metrics) Forget(tx *view.Tx, stream string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if stream != wire.JobMetrics || !m.state.Raw {
		return nil // only roll-ups were read, and those of a new stream continue from there
	}
	if err := m.flush(tx); err != nil {
		return err
	}
	if err := m.dropSegments(tx); err != nil {
		return err
	}
	m.newStream(m.state.Generation + 1)
	return m.save(tx)
}

// newStream begins with a stream of which nothing was counted.
func (m *Metrics) newStream(generation int64) {
	m.state = State{Generation: generation}
	clear(m.cells)
	clear(m.pendingRollups)
}

// Start implements view.Starter. Records that roll-ups cover need not be read.
func (m *Metrics) Start(tx *view.Tx, stream string, last int64) (from int64, known bool, err error) {
	if stream != wire.JobMetrics {
		return -1, true, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.state.Raw: // records were lost before they were read
		return -1, false, m.reset(tx)
	case last+1 < m.state.Through: // roll-ups cover more than there is: the stream was created again
		m.newStream(m.state.Generation + 1)
	}
	if m.state.Through == 0 {
		return -1, true, nil
	}
	return m.state.Through, true, nil
}

// reset deletes everything, and rewinds both streams.
func (m *Metrics) reset(tx *view.Tx) error {
	m.clear()
	if err := tx.DeleteRange([]byte{prefix}, []byte{prefix + 1}); err != nil {
		return err
	}
	for _, stream := range m.Streams() {
		if err := tx.Rewind(stream); err != nil {
			return err
		}
	}
	return nil
}

package metrics

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Metrics is the fold over metrics and their roll-ups. A Reader reads what it found.
type Metrics struct {
	store *view.Store
	*writer
	rollups rollups
	records []wire.Metric // room for one message
}

// New returns the fold with the state that the store has. It accepts roll-ups only from trusted
// users. now is time.Now if it is nil. It decides only what is deleted, what is refused because it
// is in the future, and when sums are written.
func New(store *view.Store, now func() time.Time, trusted ...string) (*Metrics, error) {
	if now == nil {
		now = time.Now
	}
	w := &writer{now: now, memory: &memory{runs: runLog{bounds: RunBounds{}.withDefaults()}}}
	m := &Metrics{store: store, writer: w, rollups: rollups{writer: w, trusted: map[string]bool{}}}
	for _, u := range trusted {
		m.rollups.trusted[u] = u != ""
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
	m.rollups.resetting = false
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

// Streams implements tracker.Part.
func (m *Metrics) Streams() []string { return folded }

// Fold implements tracker.Part.
func (m *Metrics) Fold(tx *view.Tx, r *wire.Record) (string, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rollups.resetting {
		return "", nil, nil
	}
	if r.Stream == wire.Rollups {
		return m.rollups.fold(tx, r)
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
	m.rollups.resetting = false
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

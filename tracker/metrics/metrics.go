package metrics

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Metrics folds metrics and their roll-ups, and answers queries about them.
type Metrics struct {
	store   *view.Store
	trusted map[string]bool
	now     func() time.Time

	mu       sync.Mutex
	state    State
	added    map[cell]*row // since the last flush
	flushing map[cell]*row // being written
	days     map[int64]*names
	ever     map[pair]bool // those that have sums of their own for ever
	total    Counts
	cells    map[cell]struct{} // of the piece
	cached   map[string]*row   // rows of the store that are added to often
	ahead    map[int64]int64   // roll-ups that were read before their records: end → begin
	shown    State             // as it was written last
	over     bool              // all is read again, and the rest of this batch is not for the new beginning

	bounds    RunBounds
	runs      runsState  // of the batch
	runsShown runsState  // as it was written last
	full      []runBlock // not written yet
	writing   []runBlock // being written
	block     runBlock   // that is being filled

	records []wire.Metric // room for one message
	flushed time.Time
	pruned  time.Time
}

// State is how far everything is counted.
type State struct {
	Generation int64 `json:"generation"` // how often job_metrics was created again
	Through    int64 `json:"through"`    // below this offset everything is counted
	Rolled     int64 `json:"rolled"`     // below this offset everything is in roll-ups
	Raw        bool  `json:"raw"`        // records of this generation were counted themselves
	Piece      piece `json:"piece"`
}

// New opens what is kept. Only roll-ups of trusted users are believed. now is time.Now if it is
// nil; it decides only what is forgotten, what is refused because it has not happened yet, and when
// sums are written.
func New(store *view.Store, now func() time.Time, trusted ...string) (*Metrics, error) {
	if now == nil {
		now = time.Now
	}
	m := &Metrics{store: store, now: now, trusted: map[string]bool{}, bounds: RunBounds{}.withDefaults()}
	for _, u := range trusted {
		m.trusted[u] = u != ""
	}
	return m, m.Reload()
}

// Reload implements view.Reloader.
func (m *Metrics) Reload() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.over = false
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
	if err := m.loadPiece(); err != nil {
		return err
	}
	if err := m.loadRuns(); err != nil {
		return err
	}
	return m.loadEver()
}

// clear forgets everything that is in memory.
func (m *Metrics) clear() {
	m.state, m.shown = State{}, State{}
	m.added, m.flushing = map[cell]*row{}, nil
	m.days, m.ever, m.total = map[int64]*names{}, map[pair]bool{}, Counts{}
	m.cells, m.cached, m.ahead = map[cell]struct{}{}, map[string]*row{}, map[int64]int64{}
	m.flushed = time.Time{}
	m.runs, m.runsShown, m.full, m.writing, m.block = runsState{}, runsState{}, nil, nil, runBlock{}
}

func (m *Metrics) loadEver() error {
	return m.scan(m.store, tableEver, 0, 1, false, func(_ int64, p pair, r *row) {
		m.everPair(p)
		m.total = m.total.plus(r.outcome())
	})
}

func (c Counts) plus(o Counts) Counts {
	return Counts{c.Success + o.Success, c.Failed + o.Failed, c.Dead + o.Dead, c.Discarded + o.Discarded, c.Expired + o.Expired}
}

// Streams implements tracker.Part.
func (m *Metrics) Streams() []string { return []string{wire.JobMetrics, wire.Rollups} }

// Fold implements tracker.Part.
func (m *Metrics) Fold(tx *view.Tx, r *wire.Record) (string, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return "", nil, nil
	}
	if r.Stream == wire.Rollups {
		return m.foldRollup(tx, r)
	}
	return m.foldMessage(tx, r)
}

// foldMessage takes in a message of job_metrics.
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
		if err := m.cut(tx, r.Offset, floor(good[0].At.Unix(), day)); err != nil {
			return "", nil, err
		}
	}
	for i := range good {
		if err := m.add(tx, &good[i]); err != nil {
			return "", nil, err
		}
	}
	m.keepRuns(r.Offset, good)
	m.advance(r.Offset)
	return reason, refused, nil
}

// aheadAtMost is how far a worker's clock may be ahead.
const aheadAtMost = 24 * time.Hour

// tooLate returns why a message is refused: it is about what has not happened yet, or about what is
// no longer kept. It would begin minutes that no query asks for.
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
	r, known := m.added[c]
	if !known || errorClass != "" {
		names, err := m.namesOf(tx, floor(c.minute, day))
		if err != nil {
			return err
		}
		c.pair, errorClass = names.admit(c.pair, errorClass)
		r = m.added[c]
	}
	if r == nil {
		r = &row{}
		m.added[c] = r
	}
	r.add(rec, errorClass)
	one := row{}
	one.counts[outcomeOf(rec.Status)] = 1
	m.total = m.total.plus(one.outcome())
	if d := m.days[floor(c.minute, day)]; d != nil {
		d.total = d.total.plus(one.outcome())
	}
	m.note(c)
	return nil
}

// Commit implements tracker.Part: once in a while it writes what was added.
func (m *Metrics) Commit(tx *view.Tx) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = false
	if m.state == m.shown && len(m.added) == 0 {
		return nil
	}
	if m.now().Sub(m.flushed) < flushEvery && len(m.added) < maxAdded && len(m.days) < maxDays {
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
		return nil // what roll-ups said is known, and those of a new stream go on from there
	}
	if err := m.flush(tx); err != nil {
		return err
	}
	if err := m.dropPieces(tx); err != nil {
		return err
	}
	m.restart(m.state.Generation + 1)
	return m.save(tx)
}

// restart begins with a stream of which nothing was counted.
func (m *Metrics) restart(generation int64) {
	m.state = State{Generation: generation}
	clear(m.cells)
	clear(m.ahead)
}

// Start implements view.Starter: what roll-ups cover need not be read.
func (m *Metrics) Start(tx *view.Tx, stream string, last int64) (from int64, known bool, err error) {
	if stream != wire.JobMetrics {
		return -1, true, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.state.Raw: // records were lost before they were read
		return -1, false, m.reset(tx)
	case last+1 < m.state.Through: // roll-ups have more than there is: the stream was created again
		m.restart(m.state.Generation + 1)
	}
	if m.state.Through == 0 {
		return -1, true, nil
	}
	return m.state.Through, true, nil
}

// reset forgets everything, and makes the view read both streams again.
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

// Progress returns how far everything is counted.
func (m *Metrics) Progress() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// visible calls fn for what was added and is not in the store yet.
func (m *Metrics) visible(fn func(cell, *row)) {
	for _, some := range []map[cell]*row{m.flushing, m.added} {
		for c, r := range maps.All(some) {
			fn(c, r)
		}
	}
}

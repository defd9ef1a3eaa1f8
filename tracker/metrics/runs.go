package metrics

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Runs that were reported lately are kept in blocks, in the order in which they were read. A block
// is written with the sums of the same records, so nothing is kept twice, and again and again until
// it is full: its first line says what can be in it, so that a search passes over blocks that
// cannot have what it looks for.
const (
	tableRuns  = 'r' // number           → block: its runs, one behind the other
	tableLines = 'l' // number           → what can be in the block
	tableKept  = 'k' //                  → runsState, as JSON

	blockRuns  = 256
	bloomBytes = blockRuns * 12 / 8
	bloomBits  = bloomBytes * 8
	bloomMarks = 6
)

// RunBounds are how many runs are kept, and for how long.
type RunBounds struct {
	Runs  int64         // default 1,000,000
	Bytes int64         // default 128 MiB
	Age   time.Duration // default 72 h
}

func (b RunBounds) withDefaults() RunBounds {
	if b.Runs == 0 {
		b.Runs = 1_000_000
	}
	if b.Bytes == 0 {
		b.Bytes = 128 << 20
	}
	if b.Age == 0 {
		b.Age = 72 * time.Hour
	}
	return b
}

// Keep bounds which runs are kept. It must be called before anything is folded.
func (m *Metrics) Keep(b RunBounds) { m.bounds = b.withDefaults() }

// runsState is what is kept.
type runsState struct {
	First int64 `json:"first"` // the oldest block
	Next  int64 `json:"next"`  // the number of the block that is being filled
	Bytes int64 `json:"bytes"` // of all full blocks
	Since int64 `json:"since"` // no run reported before this time, in seconds, need be here: they were forgotten, or never read
}

// runBlock is a block in memory.
type runBlock struct {
	line blockLine
	raw  []byte
}

// blockLine is what can be in a block.
type blockLine struct {
	count    int
	from, to int64 // the offsets that it has runs of; the generation of the stream stands in front
	min, max int64 // the times of its runs, in microseconds
	bloom    [bloomBytes]byte
}

func keyRunBlock(t byte, n int64) []byte { return keyStart(t, n) }

func (m *Metrics) loadRuns() error {
	raw, ok, err := m.store.Get(keyRows(tableKept))
	if err != nil || !ok {
		return err
	}
	if err := json.Unmarshal(raw, &m.runs); err != nil {
		return fmt.Errorf("metrics: state of runs is damaged: %w", err)
	}
	m.runsShown = m.runs
	line, ok, err := m.store.Get(keyRunBlock(tableLines, m.runs.Next))
	if err != nil || !ok {
		return err
	}
	if m.block.line, err = decodeLine(line); err != nil {
		return err
	}
	m.block.raw, _, err = m.store.Get(keyRunBlock(tableRuns, m.runs.Next))
	return err
}

// generationBits is where the generation of the stream stands in front of an offset, so that places
// are in order also when it was created again.
const generationBits = 48

// keepRuns keeps what a message of job_metrics says.
func (m *Metrics) keepRuns(offset int64, all []wire.Metric) {
	if m.runs == (runsState{}) && m.block.line.count == 0 && len(all) > 0 && offset > 1 { // the stream has forgotten how it began
		m.runs.Since = all[0].At.Unix() + 1
	}
	offset += m.state.Generation << generationBits
	for i := range all {
		if m.block.line.count == blockRuns {
			m.full = append(m.full, m.block)
			m.block = runBlock{raw: make([]byte, 0, len(m.block.raw)+1024)}
		}
		m.block.add(offset, i, &all[i])
	}
}

func (b *runBlock) add(offset int64, index int, r *wire.Metric) {
	at := r.At.UnixMicro()
	l := &b.line
	if l.count == 0 {
		l.from, l.min, l.max = offset, at, at
	}
	l.to, l.min, l.max = offset, min(l.min, at), max(l.max, at)
	l.count++
	l.mark(r.JID)
	for _, n := range []int64{offset, int64(index), at, int64(r.Duration), int64(r.Wait), r.Attempt} {
		b.raw = binary.AppendVarint(b.raw, n)
	}
	b.raw = append(b.raw, byte(outcomeOf(r.Status)))
	for _, s := range []string{r.JID, r.Class, r.Queue, r.Worker, r.ErrorClass} {
		b.raw = table.AppendText(b.raw, s)
	}
}

// spots are the bits of a bloom filter that stand for a jid.
func spots(jid string) (all [bloomMarks]uint32) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(jid)) // it never fails
	sum := h.Sum64()
	a, b := uint32(sum), uint32(sum>>32)|1
	for i := range all {
		all[i] = (a + uint32(i)*b) % bloomBits
	}
	return all
}

func (l *blockLine) mark(jid string) {
	for _, s := range spots(jid) {
		l.bloom[s/8] |= 1 << (s % 8)
	}
}

// mayHave reports whether a run of a job can be in the block.
func (l *blockLine) mayHave(all [bloomMarks]uint32) bool {
	for _, s := range all {
		if l.bloom[s/8]&(1<<(s%8)) == 0 {
			return false
		}
	}
	return true
}

func (l *blockLine) encode() []byte {
	b := make([]byte, 0, 64+bloomBytes)
	for _, n := range []int64{int64(l.count), l.from, l.to, l.min, l.max} {
		b = binary.AppendVarint(b, n)
	}
	return append(b, l.bloom[:]...)
}

func decodeLine(b []byte) (l blockLine, err error) {
	d := table.Decoder{B: b}
	l.count, l.from, l.to, l.min, l.max = int(d.Int()), d.Int(), d.Int(), d.Int(), d.Int()
	if d.Bad || len(d.B) != bloomBytes {
		return l, errDamagedRuns
	}
	copy(l.bloom[:], d.B)
	return l, nil
}

var errDamagedRuns = fmt.Errorf("metrics: a block of runs is damaged")

// skipRuns notes that runs up to a time were not read: a roll-up covered them.
func (m *Metrics) skipRuns(rows map[cell]*row) {
	for c := range rows {
		m.runs.Since = max(m.runs.Since, c.minute+minute)
	}
}

// flushRuns writes what was added, and forgets what is too much or too old.
func (m *Metrics) flushRuns(tx *view.Tx) error {
	for i := range m.full {
		if err := m.writeBlock(tx, &m.full[i]); err != nil {
			return err
		}
		m.runs.Next++
		m.runs.Bytes += int64(len(m.full[i].raw) + bloomBytes)
	}
	m.writing, m.full = append(m.writing, m.full...), nil
	if m.block.line.count > 0 {
		if err := m.writeBlock(tx, &m.block); err != nil {
			return err
		}
	}
	if err := m.forgetRuns(tx); err != nil {
		return err
	}
	raw, err := json.Marshal(m.runs)
	if err != nil {
		return fmt.Errorf("metrics: save the state of runs: %w", err)
	}
	return tx.Set(keyRows(tableKept), raw)
}

func (m *Metrics) writeBlock(tx *view.Tx, b *runBlock) error {
	if err := tx.Set(keyRunBlock(tableRuns, m.runs.Next), b.raw); err != nil {
		return err
	}
	return tx.Set(keyRunBlock(tableLines, m.runs.Next), b.line.encode())
}

func (m *Metrics) forgetRuns(tx *view.Tx) error {
	tooOld := m.now().Add(-m.bounds.Age).UnixMicro()
	for m.runs.First < m.runs.Next {
		line, ok, err := tx.Get(keyRunBlock(tableLines, m.runs.First))
		if err != nil {
			return err
		}
		var l blockLine
		if ok {
			if l, err = decodeLine(line); err != nil {
				return err
			}
		}
		tooMany := (m.runs.Next-m.runs.First)*blockRuns > m.bounds.Runs || m.runs.Bytes > m.bounds.Bytes
		if ok && !tooMany && l.max >= tooOld {
			return nil
		}
		raw, _, err := tx.Get(keyRunBlock(tableRuns, m.runs.First))
		if err != nil {
			return err
		}
		for _, t := range []byte{tableRuns, tableLines} {
			if err := tx.Delete(keyRunBlock(t, m.runs.First)); err != nil {
				return err
			}
		}
		m.runs.Bytes -= int64(len(raw) + bloomBytes)
		m.runs.Since = max(m.runs.Since, int64(math.Ceil(float64(l.max)/1e6)))
		m.runs.First++
	}
	return nil
}

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

// Recent runs are kept in blocks, in the order in which they were read. A block is written together
// with the sums of the same records, so no run is kept twice. It is written again until it is full.
// Its line says what it may contain, so that a search skips blocks.
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

// runLog has the runs that were reported lately.
type runLog struct {
	bounds  RunBounds
	state   runsState  // of the batch
	shown   runsState  // as it was written last
	full    []runBlock // not written yet
	writing []runBlock // being written
	block   runBlock   // that is being filled
}

// runsState says which blocks are kept.
type runsState struct {
	First int64 `json:"first"` // the oldest block
	Next  int64 `json:"next"`  // the number of the block that is being filled
	Bytes int64 `json:"bytes"` // of all full blocks
	// Runs that were reported before this time, in seconds, may be missing: they were deleted, or
	// never read.
	Since int64 `json:"since"`
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

func (l *runLog) load(in view.Reader) error {
	raw, ok, err := in.Get(keyRows(tableKept))
	if err != nil || !ok {
		return err
	}
	if err := json.Unmarshal(raw, &l.state); err != nil {
		return fmt.Errorf("metrics: state of runs is damaged: %w", err)
	}
	l.shown = l.state
	line, ok, err := in.Get(keyStart(tableLines, l.state.Next))
	if err != nil || !ok {
		return err
	}
	if l.block.line, err = decodeLine(line); err != nil {
		return err
	}
	l.block.raw, _, err = in.Get(keyStart(tableRuns, l.state.Next))
	return err
}

// generationBits is where the generation of the stream stands in front of an offset. So offsets of
// a stream that was created again are behind the old ones.
const generationBits = 48

// keep adds the runs of a message of job_metrics.
func (l *runLog) keep(offset, generation int64, all []wire.Metric) {
	// Retention has deleted the beginning of the stream.
	if l.state == (runsState{}) && l.block.line.count == 0 && len(all) > 0 && offset > 1 {
		l.state.Since = all[0].At.Unix() + 1
	}
	offset += generation << generationBits
	for i := range all {
		if l.block.line.count == blockRuns {
			l.full = append(l.full, l.block)
			l.block = runBlock{raw: make([]byte, 0, len(l.block.raw)+1024)}
		}
		l.block.add(offset, i, &all[i])
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

// spots returns the bits of a bloom filter for a jid.
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

// mayHave reports whether the block may have a run of a job.
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

// skip notes that runs up to a time were not read, because a roll-up replaced them.
func (l *runLog) skip(rows map[cell]*row) {
	for c := range rows {
		l.state.Since = max(l.state.Since, c.minute+minute)
	}
}

// flush writes the runs that were added, and deletes those that are too many or too old.
func (l *runLog) flush(tx *view.Tx, now time.Time) error {
	for i := range l.full {
		if err := l.writeBlock(tx, &l.full[i]); err != nil {
			return err
		}
		l.state.Next++
		l.state.Bytes += int64(len(l.full[i].raw) + bloomBytes)
	}
	l.writing, l.full = append(l.writing, l.full...), nil
	if l.block.line.count > 0 {
		if err := l.writeBlock(tx, &l.block); err != nil {
			return err
		}
	}
	if err := l.forget(tx, now); err != nil {
		return err
	}
	raw, err := json.Marshal(l.state)
	if err != nil {
		return fmt.Errorf("metrics: save the state of runs: %w", err)
	}
	return tx.Set(keyRows(tableKept), raw)
}

func (l *runLog) writeBlock(tx *view.Tx, b *runBlock) error {
	if err := tx.Set(keyStart(tableRuns, l.state.Next), b.raw); err != nil {
		return err
	}
	return tx.Set(keyStart(tableLines, l.state.Next), b.line.encode())
}

func (l *runLog) forget(tx *view.Tx, now time.Time) error {
	tooOld := now.Add(-l.bounds.Age).UnixMicro()
	for l.state.First < l.state.Next {
		line, ok, err := tx.Get(keyStart(tableLines, l.state.First))
		if err != nil {
			return err
		}
		var has blockLine
		if ok {
			if has, err = decodeLine(line); err != nil {
				return err
			}
		}
		tooMany := (l.state.Next-l.state.First)*blockRuns > l.bounds.Runs || l.state.Bytes > l.bounds.Bytes
		if ok && !tooMany && has.max >= tooOld {
			return nil
		}
		raw, _, err := tx.Get(keyStart(tableRuns, l.state.First))
		if err != nil {
			return err
		}
		for _, t := range []byte{tableRuns, tableLines} {
			if err := tx.Delete(keyStart(t, l.state.First)); err != nil {
				return err
			}
		}
		l.state.Bytes -= int64(len(raw) + bloomBytes)
		l.state.Since = max(l.state.Since, int64(math.Ceil(float64(has.max)/1e6)))
		l.state.First++
	}
	return nil
}

// written notes that what was flushed is in the store.
func (l *runLog) written() { l.writing, l.shown = nil, l.state }

package metrics

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// row is the sum of one class in one queue over a span of time.
type row struct {
	counts [outcomes]int64
	total  int64 // microseconds of all that ran
	most   int64 // of the one that ran longest
	run    *sketch
	wait   *sketch
	tries  attempts // of jobs that came to their end
	errors map[string]int64
}

// add counts one record. Only the wait of first attempts says something about the queue.
func (r *row) add(m *wire.Metric, errorClass string) {
	outcome := outcomeOf(m.Status)
	r.counts[outcome]++
	if m.Duration >= 0 && outcome <= dead {
		us := m.Duration.Microseconds()
		r.total = plus(r.total, us)
		r.most = max(r.most, us)
		if r.run == nil {
			r.run = newSketch()
		}
		r.run.add(m.Duration)
	}
	if m.Wait >= 0 && m.Attempt <= 1 {
		if r.wait == nil {
			r.wait = newSketch()
		}
		r.wait.add(m.Wait)
	}
	if m.Attempt > 0 && ends(outcome) {
		r.tries = r.tries.add(m.Attempt, 1)
	}
	if errorClass != "" {
		r.countError(errorClass, 1)
	}
}

func (r *row) countError(class string, n int64) {
	if r.errors == nil {
		r.errors = map[string]int64{}
	}
	r.errors[class] += n
}

func (r *row) merge(o *row) {
	for i, n := range o.counts {
		r.counts[i] += n
	}
	r.total = plus(r.total, o.total)
	r.most = max(r.most, o.most)
	r.run, r.wait = mergeSketch(r.run, o.run), mergeSketch(r.wait, o.wait)
	r.tries = r.tries.merge(o.tries)
	for class, n := range o.errors {
		r.countError(class, n)
	}
}

func (r *row) encode() []byte {
	b := make([]byte, 0, 128)
	for _, n := range r.counts {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendVarint(binary.AppendVarint(b, r.total), r.most)
	b = table.AppendText(table.AppendText(b, r.run.encode()), r.wait.encode())
	b = binary.AppendVarint(b, int64(len(r.tries)))
	for _, n := range r.tries {
		b = binary.AppendVarint(b, n)
	}
	for class, n := range r.errors {
		b = binary.AppendVarint(table.AppendText(b, class), n)
	}
	return b
}

var errDamaged = errors.New("metrics: stored sum is damaged")

// decodeRow decodes a row. It decodes the sketches only if sketches is set.
func decodeRow(b []byte, sketches bool) (*row, error) {
	r := &row{}
	d := table.Decoder{B: b}
	for i := range r.counts {
		r.counts[i] = d.Int()
	}
	r.total, r.most = d.Int(), d.Int()
	run, wait := d.Bytes(), d.Bytes()
	for n := d.Int(); n > 0 && !d.Bad; n-- {
		r.tries = append(r.tries, d.Int())
	}
	for len(d.B) > 0 && !d.Bad {
		class := string(d.Bytes())
		r.countError(class, d.Int())
	}
	if d.Bad {
		return nil, errDamaged
	}
	if !sketches {
		return r, nil
	}
	var err1, err2 error
	r.run, err1 = decodeSketch(run)
	r.wait, err2 = decodeSketch(wait)
	return r, errors.Join(err1, err2)
}

func (r *row) rollup(minute int64, p pair) wire.RollupRow {
	return wire.RollupRow{Minute: minute, Class: p.class, Queue: p.queue, Success: r.counts[success], Failed: r.counts[failed],
		Dead: r.counts[dead], Discarded: r.counts[discarded], Expired: r.counts[expired], TotalUS: r.total, MaxUS: r.most,
		Run: r.run.encode(), Wait: r.wait.encode(), Attempts: r.tries, Errors: r.errors}
}

func rowOf(w *wire.RollupRow) (*row, error) {
	r := &row{counts: [outcomes]int64{w.Success, w.Failed, w.Dead, w.Discarded, w.Expired}, total: w.TotalUS, most: w.MaxUS, errors: w.Errors,
		tries: attempts(nil).merge(w.Attempts)}
	var err1, err2 error
	r.run, err1 = decodeSketch(w.Run)
	r.wait, err2 = decodeSketch(w.Wait)
	return r, errors.Join(err1, err2)
}

func (r *row) outcome() Counts {
	return Counts{r.counts[success], r.counts[failed], r.counts[dead], r.counts[discarded], r.counts[expired]}
}

func span(us int64) time.Duration {
	return time.Duration(min(us, math.MaxInt64/1000)) * time.Microsecond
}

// plus adds numbers that are never negative, and stops at the largest number. A worker may report
// any run time, any number of times.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

package metrics

import (
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// Run is an attempt that a worker reported.
type Run struct {
	Offset   int64 // of the message in job_metrics, with the generation of the stream in front
	Index    int   // of the record in that message
	At       time.Time
	JID      string
	Class    string
	Queue    string
	Status   string
	Duration time.Duration // negative: it is not known
	Wait     time.Duration // negative: it is not known
	Attempt  int64
	Worker   string
	Error    string
}

// RunQuery selects runs. Empty fields match all.
type RunQuery struct {
	Queue, Class, JID, Error string
	Worker                   string   // the identity of the process
	Status                   []string // any of them
	From, To                 time.Time
	Behind                   *RunPlace // only runs that were reported before this one
	Limit                    int       // runs at most
	Most                     int       // runs to look at
}

// RunPlace identifies a run, on every sidecar alike.
type RunPlace struct {
	Offset int64
	Index  int
}

// RunsFound has the runs that match, the newest report first.
type RunsFound struct {
	Runs     []Run
	Searched int
	Next     *RunPlace // continue behind it; nil: there is no more
	Older    bool      // there may have been older ones that match, which are not kept
}

func (q *RunQuery) match(r *Run) bool {
	if q.Behind != nil && (r.Offset > q.Behind.Offset || r.Offset == q.Behind.Offset && r.Index >= q.Behind.Index) {
		return false
	}
	if q.Queue != "" && r.Queue != q.Queue || q.Class != "" && r.Class != q.Class || q.JID != "" && r.JID != q.JID || q.Error != "" && r.Error != q.Error ||
		q.Worker != "" && r.Worker != q.Worker {
		return false
	}
	if !q.From.IsZero() && r.At.Before(q.From) || !q.To.IsZero() && !r.At.Before(q.To) {
		return false
	}
	return len(q.Status) == 0 || slices.Contains(q.Status, r.Status)
}

// mayHave reports whether a block may have a matching run.
func (q *RunQuery) mayHave(l *blockLine, jid [bloomMarks]uint32) bool {
	return (q.Behind == nil || l.from <= q.Behind.Offset) && (q.JID == "" || l.mayHave(jid)) &&
		(q.From.IsZero() || l.max >= q.From.UnixMicro()) && (q.To.IsZero() || l.min < q.To.UnixMicro())
}

// Runs returns the runs that workers reported, the newest report first.
func (d *Reader) Runs(q RunQuery) (f RunsFound, err error) {
	d.mu.Lock()
	state, memory := d.runs.shown, append(append(slices.Clone(d.runs.writing), d.runs.full...), d.runs.block)
	d.mu.Unlock()
	jid := spots(q.JID)
	for i := len(memory) - 1; i >= 0; i-- { // the blocks in memory are complete
		if b := &memory[i]; b.line.count > 0 && q.mayHave(&b.line, jid) {
			if more, err := f.search(&q, b.raw); err != nil || !more {
				return f, err
			}
		}
	}
	err = table.Scan(d.store, keyStart(tableLines, state.First), keyStart(tableLines, state.Next), true, func(key, value []byte) (bool, error) {
		l, err := decodeLine(value)
		if err != nil || !q.mayHave(&l, jid) {
			return true, err
		}
		raw, ok, err := d.store.Get(keyStart(tableRuns, startOf(key)))
		if err != nil || !ok { // deleted meanwhile
			return false, err
		}
		return f.search(&q, raw)
	})
	f.Older = f.Next == nil && (q.From.IsZero() && state.Since > 0 || !q.From.IsZero() && q.From.Unix() <= state.Since)
	return f, err
}

// search searches a block, and reports whether to continue.
func (f *RunsFound) search(q *RunQuery, raw []byte) (more bool, err error) {
	runs, err := decodeRuns(raw)
	if err != nil {
		return false, err
	}
	for i := len(runs) - 1; i >= 0; i-- {
		r := &runs[i]
		f.Searched++
		if !q.match(r) {
			continue
		}
		if len(f.Runs) == q.Limit {
			last := &f.Runs[q.Limit-1]
			f.Next = &RunPlace{last.Offset, last.Index}
			return false, nil
		}
		f.Runs = append(f.Runs, *r)
	}
	if f.Searched >= q.Most && len(runs) > 0 {
		f.Next = &RunPlace{runs[0].Offset, runs[0].Index}
		return false, nil
	}
	return true, nil
}

func decodeRuns(raw []byte) (all []Run, err error) {
	all = make([]Run, 0, blockRuns)
	d := table.Decoder{B: raw}
	for len(d.B) > 0 && !d.Bad {
		r := Run{Offset: d.Int(), Index: int(d.Int()), At: time.UnixMicro(d.Int()).UTC(), Duration: time.Duration(d.Int()), Wait: time.Duration(d.Int()), Attempt: d.Int()}
		if len(d.B) == 0 {
			return nil, errDamagedRuns
		}
		r.Status, d.B = statusOf(d.B[0]), d.B[1:]
		r.JID, r.Class, r.Queue, r.Worker, r.Error = string(d.Bytes()), string(d.Bytes()), string(d.Bytes()), string(d.Bytes()), string(d.Bytes())
		all = append(all, r)
	}
	if d.Bad {
		return nil, errDamagedRuns
	}
	return all, nil
}

func statusOf(outcome byte) string {
	for _, s := range wire.MetricStatuses {
		if byte(outcomeOf(s)) == outcome {
			return s
		}
	}
	return ""
}

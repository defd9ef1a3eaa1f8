package crew

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Work is what workers have written down. An attempt is a jid and how often it had failed.
type Work struct {
	// Again has the attempts that began although their end was confirmed.
	Again []string
	// Twice has the attempts that began again although the broker had not given them out again.
	Twice []string
	// Repeats counts the attempts that began again, for any reason.
	Repeats int
	// Most is the largest number of jobs of one key that ran at once.
	Most int

	running   map[string]attempt // by worker
	owner     map[string]string  // the worker in which an attempt began last
	repeated  map[string]bool    // attempts that began again
	ended     map[string]bool    // attempts
	confirmed map[string]bool    // attempts whose end the broker has confirmed
	failed    map[string]bool    // attempts
	spans     map[string]map[string]*span
	lines     []line
}

type attempt struct{ name, key string }

// span is from when a job began until it had ended for good.
type span struct {
	jid        string
	begin, end float64 // 0: not yet
}

// line is one line of a worker.
type line struct {
	what, worker string
	attempt
	at  float64
	how string // of a job that begins: first, or again
}

// ReadWork reads the lines of workers, those of all at once in the order of time.
func ReadWork(path string) (*Work, error) {
	w := &Work{running: map[string]attempt{}, owner: map[string]string{}, repeated: map[string]bool{}, ended: map[string]bool{}, confirmed: map[string]bool{}, failed: map[string]bool{},
		spans: map[string]map[string]*span{}}
	read, err := readLines(path)
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, fields := range read {
		if len(fields) < 5 {
			continue
		}
		l := line{what: fields[0], worker: fields[1], attempt: attempt{fields[2], fields[3]}}
		if l.at, err = strconv.ParseFloat(fields[4], 64); err != nil {
			return nil, fmt.Errorf("crew: a line has no time: %w", err)
		}
		if len(fields) > 5 {
			l.how = fields[5]
		}
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range lines {
		w.take(l)
	}
	w.lines = lines
	return w, nil
}

// History returns what was written down of a job.
func (w *Work) History(jid string) (text string) {
	for _, l := range w.lines {
		if strings.HasPrefix(l.name, jid+"/") {
			text += fmt.Sprintf("%f %s %s %s %s\n", l.at, l.worker, l.what, l.name, l.how)
		}
	}
	return text
}

// take takes in one line. What a worker says of an attempt that has begun in another one since
// counts no more: it had lost its connection, and the end that it reports is void.
func (w *Work) take(l line) {
	owns := w.owner[l.name] == l.worker
	switch l.what {
	case "begins":
		w.begins(l)
	case "ends":
		if owns {
			w.ended[l.name] = true
			one := w.span(l.attempt)
			one.end = max(one.end, l.at)
		}
		delete(w.running, l.worker)
	case "lost": // it was killed, or lost its connection
		delete(w.running, l.worker)
	case "dropped": // a worker died after it had reported the end, and before it could write that down
		w.confirmed[l.name] = w.confirmed[l.name] || w.ended[l.name]
	case "failed":
		w.failed[l.name] = w.failed[l.name] || owns
	case "confirmed":
		w.confirmed[l.name] = w.confirmed[l.name] || owns
	}
}

// begins takes in that a job begins. A worker may die between the retry of its job and the report
// of the end. Then the job runs again, and if it fails again it has two retries.
func (w *Work) begins(l line) {
	twoRetries := w.repeated[before(l.name)]
	if w.confirmed[l.name] && !twoRetries {
		w.Again = append(w.Again, l.name)
	}
	if w.owner[l.name] != "" {
		w.Repeats++
		w.repeated[l.name] = true
		if l.how == "first" && !twoRetries {
			w.Twice = append(w.Twice, l.name)
		}
	}
	for worker, other := range w.running {
		if other.name == l.name {
			delete(w.running, worker)
		}
	}
	w.owner[l.name], w.running[l.worker] = l.worker, l.attempt
	if one := w.span(l.attempt); one.begin == 0 {
		one.begin = l.at
	}
	n := 0
	for _, other := range w.running {
		if other.key == l.key {
			n++
		}
	}
	w.Most = max(w.Most, n)
}

// before returns the attempt before this one. A first attempt has none.
func before(name string) string {
	if jid, isRetry := strings.CutSuffix(name, "/1"); isRetry {
		return jid + "/0"
	}
	return ""
}

func (w *Work) span(a attempt) *span {
	jid, _, _ := strings.Cut(a.name, "/")
	if w.spans[a.key] == nil {
		w.spans[a.key] = map[string]*span{}
	}
	if w.spans[a.key][jid] == nil {
		w.spans[a.key][jid] = &span{jid: jid}
	}
	return w.spans[a.key][jid]
}

// Done returns the jobs that have ended and are not to be retried.
func (w *Work) Done() map[string]bool {
	done := map[string]bool{}
	for name, is := range w.confirmed {
		jid, count, _ := strings.Cut(name, "/")
		if is && (count == "0" && !w.failed[name] || count == "1" && w.failed[jid+"/0"]) {
			done[jid] = true
		}
	}
	return done
}

// Missing returns those of these jobs that are not done.
func (w *Work) Missing(jids []string) (all []string) {
	done := w.Done()
	for _, jid := range jids {
		if !done[jid] {
			all = append(all, jid)
		}
	}
	return all
}

// Overlaps returns the pairs of jobs of one key that were unfinished at once.
func (w *Work) Overlaps() (pairs []string) {
	for key, jobs := range w.spans {
		var all []*span
		for _, one := range jobs {
			all = append(all, one)
		}
		slices.SortFunc(all, func(a, b *span) int { return cmp.Compare(a.begin, b.begin) })
		for i := 1; i < len(all); i++ {
			if one, next := all[i-1], all[i]; one.end == 0 || next.begin < one.end {
				pairs = append(pairs, fmt.Sprintf("%s: %s until %f, %s from %f", key, one.jid, one.end, next.jid, next.begin))
			}
		}
	}
	return pairs
}

func (w *Work) ran(jid string) bool {
	for _, jobs := range w.spans {
		if one := jobs[jid]; one != nil && one.end > 0 {
			return true
		}
	}
	return false
}

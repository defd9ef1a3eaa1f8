package metrics

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

// Query says what sums are wanted. To and From are moved outwards to full steps.
type Query struct {
	Class string // empty: all
	Queue string // empty: all
	From  time.Time
	To    time.Time
	Step  time.Duration // zero: what suits the range
}

// MaxPoints bounds a series.
const MaxPoints = 1500

// Errors of queries.
var (
	ErrStep   = errors.New("a step must be whole minutes, hours or days")
	ErrRange  = errors.New("the range must not end before it begins")
	ErrPoints = errors.New("the range has over 1500 steps")
)

// Sum is what was done in some span of time.
type Sum struct {
	Counts
	Total time.Duration // of all that ran
	Max   time.Duration
	Run   Spread
	Wait  Spread

	// Attempts are how many jobs came to their end (success, dead, discarded) at their first
	// attempt, how many at their second, and so on, as far as workers said; behind the 100th they
	// count there.
	Attempts []int64
}

func (r *row) sum() Sum {
	return Sum{Counts: r.outcome(), Total: span(r.total), Max: span(r.most), Run: r.run.spread(), Wait: r.wait.spread(),
		Attempts: append([]int64{}, r.tries...)}
}

// Named is the sum of a class or queue. Other stands for all that are over the bound on names.
type Named struct {
	Name  string
	Other bool
	Sum
}

// Failure is how often a class failed with an error.
type Failure struct {
	Class string
	Error string
	Count int64
}

// Point is a step of a series.
type Point struct {
	At time.Time
	Sum
}

// Answer is what a query found.
type Answer struct {
	From, To time.Time
	Step     time.Duration
	Older    bool // a part of the range is older than what is kept at this step
	Points   []Point
	All      Sum
	Classes  []Named   // by run time in all, the most first
	Queues   []Named   // likewise
	Failures []Failure // the most frequent first, at most 100
}

// maxFailures bounds an answer.
const maxFailures = 100

// plan is a query with everything chosen.
type plan struct {
	Query
	table    byte
	unit     int64 // of the table, in seconds
	from, to int64
	step     int64
	older    bool
}

// Ask answers a query.
func (m *Metrics) Ask(q Query) (Answer, error) {
	p, err := q.plan(m.now().Unix())
	if err != nil {
		return Answer{}, err
	}
	f := newFound(p)
	if err := m.look(&p, true, f.see); err != nil {
		return Answer{}, err
	}
	return f.answer(), nil
}

// look shows all rows that a plan asks for; sketches only if they are wanted.
func (m *Metrics) look(p *plan, sketches bool, see func(start int64, of pair, r *row)) error {
	m.mu.Lock()
	m.visible(func(c cell, r *row) {
		if start := floor(c.minute, p.unit); start >= p.from && start < p.to && p.asks(c.pair) {
			see(start, c.pair, r)
		}
	})
	m.mu.Unlock()
	return m.scanOf(m.store, p.table, p.from, p.to, sketches, p.asks, see)
}

func (q Query) plan(now int64) (p plan, err error) {
	p = plan{Query: q, step: int64(q.Step / time.Second)}
	from, to := q.From.Unix(), q.To.Unix()
	switch {
	case to < from:
		return p, ErrRange
	case q.Step == 0:
		p.step = suits(to - from)
	case q.Step < time.Minute || q.Step%time.Minute != 0:
		return p, ErrStep
	}
	p.table, p.unit = tableMinute, minute
	if p.step%day == 0 {
		p.table, p.unit = tableDay, day
	} else if p.step%hour == 0 {
		p.table, p.unit = tableHour, hour
	}
	if oldest := floor(now-ageOf(p.table), p.unit); from < oldest {
		p.older, from = true, min(oldest, to)
	}
	p.from, p.to = floor(from, p.step), floor(to+p.step-1, p.step)
	if p.steps() > MaxPoints {
		return p, ErrPoints
	}
	return p, nil
}

func (p *plan) steps() int64 { return (p.to - p.from) / p.step }

// suits is the step for a range: some hundred points at most.
func suits(seconds int64) int64 {
	switch {
	case seconds <= 6*hour:
		return minute
	case seconds <= 14*day:
		return hour
	}
	return day
}

func ageOf(t byte) int64 {
	for _, k := range kept {
		if k.table == t {
			return k.age
		}
	}
	return 0
}

// found gathers what belongs into an answer.
type found struct {
	plan
	points  []row
	all     row
	classes map[pair]*row
	queues  map[pair]*row
	errors  map[[2]string]int64
}

func newFound(p plan) *found {
	return &found{plan: p, points: make([]row, p.steps()), classes: map[pair]*row{}, queues: map[pair]*row{}, errors: map[[2]string]int64{}}
}

// asks reports whether a pair belongs into it.
func (q *Query) asks(p pair) bool {
	return (q.Class == "" || p.class == q.Class) && (q.Queue == "" || p.queue == q.Queue)
}

func (f *found) see(start int64, p pair, r *row) {
	f.points[(start-f.from)/f.step].merge(r)
	f.all.merge(r)
	add(f.classes, pair{class: p.class}, r)
	add(f.queues, pair{queue: p.queue}, r)
	for class, n := range r.errors {
		f.errors[[2]string{p.class, class}] += n
	}
}

func add(to map[pair]*row, p pair, r *row) {
	if to[p] == nil {
		to[p] = &row{}
	}
	to[p].merge(r)
}

func (f *found) answer() Answer {
	a := Answer{From: time.Unix(f.from, 0).UTC(), To: time.Unix(f.to, 0).UTC(), Step: time.Duration(f.step) * time.Second, Older: f.older,
		Points: make([]Point, len(f.points)), All: f.all.sum(), Classes: []Named{}, Queues: []Named{}, Failures: []Failure{}}
	for i := range f.points {
		a.Points[i] = Point{a.From.Add(time.Duration(i) * a.Step), f.points[i].sum()}
	}
	for p, r := range f.classes {
		a.Classes = append(a.Classes, named(p.class, r))
	}
	for p, r := range f.queues {
		a.Queues = append(a.Queues, named(p.queue, r))
	}
	for p, n := range f.errors {
		a.Failures = append(a.Failures, Failure{orOther(p[0]), p[1], n})
	}
	slices.SortFunc(a.Classes, byTotal)
	slices.SortFunc(a.Queues, byTotal)
	slices.SortFunc(a.Failures, func(x, y Failure) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Class, y.Class), cmp.Compare(x.Error, y.Error))
	})
	a.Failures = a.Failures[:min(len(a.Failures), maxFailures)]
	return a
}

func named(name string, r *row) Named { return Named{orOther(name), name == "", r.sum()} }

func orOther(name string) string { return cmp.Or(name, otherName) }

func byTotal(a, b Named) int {
	return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Count(), a.Count()), cmp.Compare(a.Name, b.Name))
}

// Totals are the counts of the day that a time belongs to (UTC), and of all there ever was.
func (m *Metrics) Totals(at time.Time) (today, ever Counts, err error) {
	start := floor(at.Unix(), day)
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.days[start]; n != nil {
		return n.total, m.total, nil
	}
	err = m.scan(m.store, tableDay, start, start+1, false, func(_ int64, _ pair, r *row) { today = today.plus(r.outcome()) })
	if err != nil {
		return today, m.total, err
	}
	m.visible(func(c cell, r *row) {
		if floor(c.minute, day) == start {
			today = today.plus(r.outcome())
		}
	})
	return today, m.total, nil
}

// Ever gives the sums of all there ever was, with failures by error class: of at most 1,000 pairs
// of class and queue, and other.
func (m *Metrics) Ever(fn func(class, queue string, s Sum, errors map[string]int64)) error {
	all := map[pair]*row{}
	m.mu.Lock()
	m.visible(func(c cell, r *row) {
		add(all, m.everPair(c.pair), r)
	})
	m.mu.Unlock()
	err := m.scan(m.store, tableEver, 0, 1, true, func(_ int64, p pair, r *row) { add(all, p, r) })
	if err != nil {
		return err
	}
	for p, r := range all {
		fn(orOther(p.class), orOther(p.queue), r.sum(), r.errors)
	}
	return nil
}

// Queues names the queues that something was done in on the day of a time, but other.
func (m *Metrics) Queues(at time.Time) []string {
	start := floor(at.Unix(), day)
	found := map[string]bool{}
	err := m.scan(m.store, tableDay, start, start+1, false, func(_ int64, p pair, _ *row) { found[p.queue] = true })
	if err != nil {
		return nil // they are only more names
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

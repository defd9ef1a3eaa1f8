package metrics

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Query selects sums. From and To are moved outwards to full steps.
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

	// Attempts has how many jobs came to their end (success, dead, discarded) at their first
	// attempt, how many at their second, and so on, if their workers report attempts. The 100th
	// also counts all later ones.
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

// plan is a query with its table and step.
type plan struct {
	Query
	table    byte
	unit     int64 // of the table, in seconds
	from, to int64
	step     int64
	older    bool
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

// suits returns the step for a range, so that there are some hundred points at most.
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

// found collects the parts of an answer.
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

// asks reports whether the query includes a pair.
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

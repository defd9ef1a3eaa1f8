package queues

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	freshFor = 2 * time.Second  // how long a snapshot serves
	staleFor = 2 * time.Second  // how long it does beyond, while the broker is being asked again: that may take a second
	restFor  = 4                // how many times as long as an answer took the broker is left alone: it may have a hard time
	blindFor = 30 * time.Second // beyond, what was seen before says nothing about the time between
	patience = 5 * time.Second  // for the broker's answer
	trendFor = 10 * time.Minute // how far back growth is looked at
	trendGap = 10 * time.Second // between two points of it
)

// Queue is a job queue. Name has no prefix.
type Queue struct {
	Name string
	broker.QueueInfo
	Oldest time.Duration // how long the oldest job waits; 0 if none does, or that is not known
	Exact  bool          // Oldest is exact, else at least
	Growth float64       // messages a second over the last minutes

	Unserved time.Duration // for how long jobs have waited and none was taken; 0 where the broker does not count deliveries
}

// Snapshot is all queues at a moment.
type Snapshot struct {
	At     time.Time
	Queues []Queue // by name
	Alarms []string
	Rates  bool // rates, unacknowledged messages and sizes are known
}

// Watch makes snapshots.
type Watch struct {
	now func() time.Time

	mu     sync.Mutex
	source Source
	rates  bool
	last   Snapshot
	err    error
	tried  time.Time     // when the broker answered; zero where they do not serve any more
	took   time.Duration // its answer
	asking chan struct{} // closed once it has answered; nil while it is not being asked
	stale  bool          // its answer will be: something was changed since it was asked
	seen   map[string]*trail
}

// New makes a watch; From gives it something to look at. now is time.Now if it is nil.
func New(now func() time.Time) *Watch {
	if now == nil {
		now = time.Now
	}
	return &Watch{now: now, seen: map[string]*trail{}}
}

// From says where snapshots come from, and whether they have more than depth and consumers.
func (w *Watch) From(source Source, rates bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.source, w.rates = source, rates
	w.forget()
}

// Look gives a snapshot that is at most four seconds old, or older where the broker takes long to
// answer. Where it does not, that is the error.
func (w *Watch) Look(ctx context.Context) (Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.source == nil {
			return Snapshot{}, errUnreached
		}
		age := w.now().Sub(w.tried)
		fresh := max(freshFor, restFor*w.took)
		if age >= fresh && w.asking == nil {
			w.asking = make(chan struct{})
			go w.ask(w.source, w.now())
		}
		if age < fresh+staleFor {
			return w.last, w.err
		}
		if err := w.wait(ctx, w.asking); err != nil {
			return w.last, err
		}
	}
}

// wait waits for an answer of the broker, which is not held up.
func (w *Watch) wait(ctx context.Context, answer <-chan struct{}) error {
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask has the source answer, for all who look meanwhile.
func (w *Watch) ask(source Source, now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, alarms, err := source(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.asking)
	w.asking = nil
	if w.stale {
		w.stale = false
		return
	}
	w.tried = w.now()
	w.took = w.tried.Sub(now)
	if w.err = err; err != nil {
		return
	}
	w.last = w.snapshot(now, found)
	w.last.Alarms = alarms
}

// Forget has the next look ask the broker: something was changed.
func (w *Watch) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget()
}

func (w *Watch) forget() {
	w.tried, w.took, w.stale = time.Time{}, 0, w.asking != nil
}

func (w *Watch) snapshot(now time.Time, found []broker.QueueInfo) Snapshot {
	s := Snapshot{At: now, Queues: []Queue{}, Rates: w.rates}
	seen := map[string]*trail{}
	blind := now.Sub(w.last.At) > blindFor
	for _, info := range found {
		name, ours := strings.CutPrefix(info.Name, wire.QueuePrefix)
		if !ours || info.Type == "stream" {
			continue
		}
		t := w.seen[name]
		if t == nil || blind {
			t = &trail{stuck: now}
		}
		seen[name] = t
		q := Queue{Name: name, QueueInfo: info}
		t.rates(now, &q.QueueInfo)
		q.Oldest, q.Exact = t.oldest(now, &info)
		if w.rates && info.Delivered > 0 {
			q.Unserved = now.Sub(t.stuck)
		}
		q.Growth = t.growth(now, info.Ready)
		s.Queues = append(s.Queues, q)
	}
	w.seen = seen
	slices.SortFunc(s.Queues, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (t *trail) oldest(now time.Time, q *broker.QueueInfo) (time.Duration, bool) {
	served := len(t.points) > 0 && q.Ready < t.points[len(t.points)-1].ready
	if q.Ready == 0 || t.delivered(q) || served {
		t.stuck = now
	}
	if q.Ready == 0 {
		return 0, true
	}
	if !q.HeadTimestamp.IsZero() && !q.HeadTimestamp.After(now) {
		return now.Sub(q.HeadTimestamp), true
	}
	return now.Sub(t.stuck), false
}

func (t *trail) growth(now time.Time, ready int64) float64 {
	if n := len(t.points); n == 0 || now.Sub(t.points[n-1].at) >= trendGap {
		t.points = append(t.points, point{now, ready})
	}
	for len(t.points) > 1 && now.Sub(t.points[0].at) > trendFor {
		t.points = t.points[1:]
	}
	first := t.points[0]
	if since := now.Sub(first.at); since >= time.Minute {
		return float64(ready-first.ready) / since.Seconds()
	}
	return 0
}

package millrace

import (
	"math/rand/v2"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// lane is a pool of slots for some queues. It outlives connections: a job whose delivery is lost
// keeps its slot until it ends.
type lane struct {
	w       *Worker
	name    string
	queues  []string
	weights []int // one for each queue, or none
	slots   chan struct{}
	changed chan struct{} // a queue was paused or resumed, or the worker became quiet
}

func newLane(w *Worker, cfg Lane) *lane {
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = defaultConcurrency
	}
	l := &lane{w: w, name: cfg.Name, queues: cfg.Queues, slots: make(chan struct{}, cfg.Concurrency), changed: make(chan struct{}, 1)}
	if len(cfg.Weights) > 0 {
		for q := range cfg.Weights {
			l.queues = append(l.queues, q)
		}
		slices.Sort(l.queues)
		for _, q := range l.queues {
			l.weights = append(l.weights, cfg.Weights[q])
		}
	}
	return l
}

// arrival is a delivery that has arrived and not begun.
type arrival struct {
	from *consumer
	d    amqp.Delivery
	at   time.Time
	end  bool // no delivery: the consumer has ended
}

// hand is the deliveries of a lane that have not begun, by queue.
type hand struct {
	waiting [][]arrival
	weights []int
	count   int
}

func newHand(l *lane) *hand {
	return &hand{waiting: make([][]arrival, len(l.queues)), weights: l.weights}
}

// put inserts an arrival after those of the same priority.
func (h *hand) put(queue int, a arrival) {
	list := h.waiting[queue]
	at := len(list)
	for at > 0 && list[at-1].d.Priority < a.d.Priority {
		at--
	}
	h.waiting[queue] = slices.Insert(list, at, a)
	h.count++
}

// take removes the arrival that begins next. It is of the first queue that has one, or of a queue
// drawn by weight.
func (h *hand) take() (queue int, a arrival) {
	queue = h.next()
	a = h.waiting[queue][0]
	h.waiting[queue] = slices.Delete(h.waiting[queue], 0, 1)
	h.count--
	return queue, a
}

func (h *hand) next() int {
	total := 0
	for q, list := range h.waiting {
		if len(list) == 0 {
			continue
		}
		if h.weights == nil {
			return q
		}
		total += h.weights[q]
	}
	drawn := rand.IntN(total)
	for q, list := range h.waiting {
		if len(list) == 0 {
			continue
		}
		if drawn -= h.weights[q]; drawn < 0 {
			return q
		}
	}
	panic("millrace: nothing at hand") // the caller has checked
}

// empty removes all arrivals of one queue.
func (h *hand) empty(queue int) []arrival {
	list := h.waiting[queue]
	h.waiting[queue] = nil
	h.count -= len(list)
	return list
}

// oldest returns when the oldest arrival of a queue arrived.
func (h *hand) oldest(queue int) (at time.Time, found bool) {
	for _, a := range h.waiting[queue] {
		if !found || a.at.Before(at) {
			at, found = a.at, true
		}
	}
	return at, found
}

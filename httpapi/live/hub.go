package live

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Bounds of what viewers are sent.
const (
	maxViewers  = 2000
	frameEvery  = 250 * time.Millisecond // at most, to each viewer
	brokerEvery = 2 * time.Second        // at most, that the broker is asked for all viewers
	slowEvery   = time.Second            // for clocks and connections, where no view changes
	idleEvery   = 5 * time.Second        // for the broker, where no view changes
	keepJobs    = time.Minute            // events of jobs for viewers that may come back
	maxCutOff   = 1000
)

// hub computes the topics for all viewers.
type hub struct {
	source Source
	kick   map[Topic]chan struct{} // by one of the topics of a loop

	mu       sync.Mutex // guards what follows
	audience audience
	board    board
	cutOff   map[string]bool // viewers that did not read, as ids end
	dropped  int64
}

// audience counts the viewers.
type audience struct {
	viewers int
	newest  int64 // number of the newest viewer
	watched map[Topic]int
	stop    func() // ends the loops and waits for them; nil while there are none
}

func newHub(source Source) *hub {
	return &hub{
		source: source, audience: audience{watched: map[Topic]int{}}, board: newBoard(), cutOff: map[string]bool{},
		kick: map[Topic]chan struct{}{Overview: make(chan struct{}, 1), Queues: make(chan struct{}, 1)},
	}
}

// join adds a viewer, whose number it returns. leave must be called.
func (h *hub) join(t Topic) (number int64, leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &h.audience
	if a.viewers >= maxViewers {
		return 0, nil, false
	}
	a.viewers++
	a.newest++
	for _, one := range t.split() {
		a.watched[one]++
		if s := h.board.topics[one]; s != nil && a.watched[one] == 1 {
			s.stale = true
		}
	}
	if a.viewers == 1 {
		a.stop = h.start()
	}
	h.wake()
	return a.newest, func() { h.leave(t) }, true
}

func (h *hub) leave(t Topic) {
	h.mu.Lock()
	a := &h.audience
	a.viewers--
	for _, one := range t.split() {
		a.watched[one]--
	}
	var stop func()
	if a.viewers == 0 {
		stop, a.stop = a.stop, nil
	}
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// wake makes the loops compute what is watched now.
func (h *hub) wake() {
	for _, kick := range h.kick {
		select {
		case kick <- struct{}{}:
		default:
		}
	}
}

// start runs a loop for what is in memory, and one for what the broker must be asked for.
func (h *hub) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { h.loop(ctx, allTopics&^Queues, h.kick[Overview], frameEvery, slowEvery); return nil })
	g.Go(func() error { h.loop(ctx, Queues, h.kick[Queues], brokerEvery, idleEvery); return nil })
	return func() {
		cancel()
		_ = g.Wait()
	}
}

// loop computes topics that have viewers, when the view has changed and every now and then.
func (h *hub) loop(ctx context.Context, topics Topic, kick <-chan struct{}, every, slow time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		changed := h.source.Changed()
		if !h.watches(topics) {
			changed = nil
			timer.Stop()
		} else {
			h.refresh(ctx, topics)
			timer.Reset(slow)
		}
		select {
		case <-ctx.Done():
			return
		case <-kick:
			continue // a viewer waits for its first frame
		case <-changed:
		case <-timer.C:
		}
		timer.Reset(every)
		select {
		case <-ctx.Done():
		case <-kick:
		case <-timer.C:
		}
	}
}

func (h *hub) watches(topics Topic) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t, n := range h.audience.watched {
		if n > 0 && topics&t != 0 {
			return true
		}
	}
	return false
}

// refresh computes what is watched, and wakes the viewers if anything has changed.
func (h *hub) refresh(ctx context.Context, topics Topic) {
	fresh := map[Topic]*shown{}
	for _, t := range topics.split() {
		if t != Jobs && h.watches(t) {
			fresh[t] = h.compute(ctx, t)
		}
	}
	happens := topics&Jobs != 0 && h.watches(Jobs)
	if happens {
		h.source.KeepHappened(time.Now().Add(keepJobs))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.board.next
	if happens {
		_, _, next, _ = h.source.Happened(0, 0)
	}
	h.board.update(fresh, next)
}

// compute returns a topic as it is now; null where that cannot be found out.
func (h *hub) compute(ctx context.Context, t Topic) *shown {
	now, essence, err := h.source.Topic(ctx, t)
	data, fault := json.Marshal(now)
	if err != nil || fault != nil {
		return &shown{essence: []byte("null"), data: []byte("null")}
	}
	if compared, err := json.Marshal(essence); essence != nil && err == nil {
		return &shown{essence: compared, data: data}
	}
	return &shown{essence: data, data: data}
}

// news returns a channel that is closed when there may be another frame. Take it before frame.
func (h *hub) news() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.board.news
}

// frame returns what has changed since a place; nil if nothing has.
func (h *hub) frame(at place) *frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.board.frame(h.source, at)
}

// id names the place of a viewer, for when it comes back.
func (h *hub) id(viewer int64, at place) string {
	return h.board.run + "." + at.String() + "." + strconv.FormatInt(viewer, 10)
}

// resume returns the place that an id names. cut reports whether the viewer was cut off there.
func (h *hub) resume(t Topic, id string) (at place, cut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, viewer := h.board.parse(t, id)
	cut = h.cutOff[viewer]
	delete(h.cutOff, viewer)
	return at, cut
}

// drop notes that a viewer did not read, so that it is notified when it comes back.
func (h *hub) drop(viewer int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped++
	if len(h.cutOff) < maxCutOff {
		h.cutOff[strconv.FormatInt(viewer, 10)] = true
	}
}

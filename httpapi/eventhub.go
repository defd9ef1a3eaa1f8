package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Bounds of what viewers are sent.
const (
	maxViewers  = 2000
	frameEvery  = 250 * time.Millisecond // at most, to each viewer
	brokerEvery = 2 * time.Second        // at most, that the broker is asked for all of them
	maxHappened = 250                    // events of jobs in a frame
	sinceJoined = 100                    // events of jobs that were there before, for a new viewer
	feedLasts   = time.Minute            // how long events are kept for viewers that may come back
	maxCutNotes = 1000
)

// hub computes what viewers are shown, once for all of them. Its loops run while there are viewers, and wake when the view has folded
// something; a viewer then builds its frame of what has changed since its last one, and shares that with all who ask for the same.
type hub struct {
	source hubSource
	run    string // ids of frames begin with it: they mean nothing to another run

	slow       time.Duration // how often it is looked for what no view tells: clocks and connections
	brokerSlow time.Duration // how often the broker is asked where no view wakes

	mu      sync.Mutex
	viewers int
	number  int64 // of the newest viewer
	watched map[topic]int
	stop    func() // ends the loops and waits for them; nil while there are none
	seq     int64
	topics  map[topic]*shown
	next    int64 // the feed's, as of seq
	news    chan struct{}
	kick    map[topic]chan struct{} // by one of the topics of a loop
	frames  map[place]*frame
	cut     map[string]bool // viewers that were cut off since they did not read, as ids end
	dropped int64
}

// hubSource is where the hub gets what it shows.
type hubSource interface {
	// topic gives what a topic shows now, and the same without what only a clock moves.
	topic(ctx context.Context, t topic) (shown, essence any, err error)
	changed() <-chan struct{}
	now() time.Time
	// happened gives what happened to jobs; see feed.Since.
	happened(from int64, most int) (items any, count int, next, missed int64)
	keepHappening(until time.Time)
}

// shown is what was computed of a topic.
type shown struct {
	since   int64  // the frame in which it changed
	essence []byte // as it is compared
	data    []byte
	stale   bool // nobody watched for a while
}

// place is up to where a viewer has seen what it watches.
type place struct {
	topics topic
	seq    int64
	next   int64 // of the feed
}

// frame is what a viewer is sent.
type frame struct {
	data []byte
	to   place
}

func newHub(source hubSource) *hub {
	return &hub{
		source: source, run: rand.Text()[:8], slow: time.Second, brokerSlow: 5 * time.Second,
		watched: map[topic]int{}, topics: map[topic]*shown{}, news: make(chan struct{}), frames: map[place]*frame{}, cut: map[string]bool{},
		kick: map[topic]chan struct{}{topicOverview: make(chan struct{}, 1), topicQueues: make(chan struct{}, 1)},
	}
}

// join adds a viewer. leave must be called.
func (h *hub) join(t topic) (number int64, leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers >= maxViewers {
		return 0, nil, false
	}
	h.viewers++
	h.number++
	for _, one := range t.split() {
		h.watched[one]++
		if s := h.topics[one]; s != nil && h.watched[one] == 1 {
			s.stale = true
		}
	}
	if h.viewers == 1 {
		h.stop = h.start()
	}
	for _, kick := range h.kick {
		select {
		case kick <- struct{}{}:
		default:
		}
	}
	return h.number, func() { h.leave(t) }, true
}

func (h *hub) leave(t topic) {
	h.mu.Lock()
	h.viewers--
	for _, one := range t.split() {
		h.watched[one]--
	}
	var stop func()
	if h.viewers == 0 {
		stop, h.stop = h.stop, nil
	}
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// start runs the loops: one for what is in memory, and one for what the broker must be asked for, which may take its time.
func (h *hub) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error {
		h.loop(ctx, topicAll&^topicQueues, h.kick[topicOverview], frameEvery, h.slow)
		return nil
	})
	g.Go(func() error { h.loop(ctx, topicQueues, h.kick[topicQueues], brokerEvery, h.brokerSlow); return nil })
	return func() {
		cancel()
		_ = g.Wait()
	}
}

// loop computes some topics whenever the view has folded something, and now and then; those that nobody watches cost nothing.
func (h *hub) loop(ctx context.Context, topics topic, kick <-chan struct{}, every, slow time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		changed := h.source.changed()
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
			continue // somebody waits for a first frame
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

func (h *hub) watches(topics topic) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t, n := range h.watched {
		if n > 0 && topics&t != 0 {
			return true
		}
	}
	return false
}

// refresh computes what is watched, and wakes the viewers if anything is not as it was.
func (h *hub) refresh(ctx context.Context, topics topic) {
	fresh := map[topic]*shown{}
	for _, t := range topics.split() {
		if t != topicJobs && h.watches(t) {
			fresh[t] = h.compute(ctx, t)
		}
	}
	happens := topics&topicJobs != 0 && h.watches(topicJobs)
	if happens {
		h.source.keepHappening(time.Now().Add(feedLasts))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	seq := h.seq + 1
	for t, s := range fresh {
		old := h.topics[t]
		if old != nil && bytes.Equal(old.essence, s.essence) {
			if old.stale {
				h.seq, old.stale = seq, false
			}
			continue
		}
		s.since, h.seq, h.topics[t] = seq, seq, s
	}
	if happens {
		if _, _, next, _ := h.source.happened(0, 0); next != h.next {
			h.seq, h.next = seq, next
		}
	}
	if h.seq == seq {
		clear(h.frames)
		close(h.news)
		h.news = make(chan struct{})
	}
}

// compute gives a topic as it is now; null where that cannot be found out.
func (h *hub) compute(ctx context.Context, t topic) *shown {
	s := &shown{essence: []byte("null"), data: []byte("null")}
	now, essence, err := h.source.topic(ctx, t)
	if err != nil {
		return s
	}
	data, err := json.Marshal(now)
	if err != nil {
		return s
	}
	s.data, s.essence = data, data
	if essence != nil {
		if s.essence, err = json.Marshal(essence); err != nil {
			s.essence = data
		}
	}
	return s
}

// woken is closed when there may be another frame. Ask for it before looking.
func (h *hub) woken() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.news
}

// frame gives what has changed since a place, nil if nothing has.
func (h *hub) frame(at place) *frame {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.frames[at]; f != nil {
		return f
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"now":%s`, strconv.FormatFloat(float64(h.source.now().UnixMicro())/1e6, 'f', -1, 64))
	to, empty := place{at.topics, h.seq, at.next}, true
	for _, t := range at.topics.split() {
		s := h.topics[t]
		if t == topicJobs || s != nil && s.since <= at.seq && !s.stale {
			continue
		}
		if s == nil || s.stale { // a moment, and it is there
			to.seq = at.seq
			continue
		}
		fmt.Fprintf(&b, `,%q:%s`, t.name(), s.data)
		empty = false
	}
	if to.seq == at.seq && !empty { // a topic is missing: what is there must come again with it
		return nil
	}
	if at.topics&topicJobs != 0 {
		empty = !h.addHappened(&b, &to) && empty
	}
	if empty {
		return nil
	}
	b.WriteByte('}')
	f := &frame{data: b.Bytes(), to: to}
	h.frames[at] = f
	return f
}

func (h *hub) addHappened(b *bytes.Buffer, to *place) bool {
	first := to.next < 0
	from, most := to.next, maxHappened
	if first {
		from, most = 0, sinceJoined
	}
	items, count, next, missed := h.source.happened(from, most)
	if first {
		missed = 0
	}
	if to.next = next; count == 0 && missed == 0 {
		return false
	}
	data, err := json.Marshal(items)
	if err != nil {
		return false
	}
	fmt.Fprintf(b, `,%q:{"items":%s,"missed":%d}`, topicJobs.name(), data, missed)
	return true
}

// id names the place that a viewer is at, for when it comes back.
func (h *hub) id(viewer int64, at place) string {
	return fmt.Sprintf("%s.%d.%d.%d", h.run, at.seq, at.next, viewer)
}

// resume gives the place that an id names: the beginning if it is of another run. cut tells that the viewer was cut off there.
func (h *hub) resume(t topic, id string) (at place, cut bool) {
	at = place{t, 0, -1}
	h.mu.Lock()
	defer h.mu.Unlock()
	parts := strings.Split(id, ".")
	if len(parts) != 4 || parts[0] != h.run {
		return at, false
	}
	cut = h.cut[parts[3]]
	delete(h.cut, parts[3])
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || seq < 0 || seq > h.seq {
		return at, cut
	}
	next, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || next < -1 {
		return at, cut
	}
	return place{t, seq, next}, cut
}

// cutOff notes that a viewer did not read, so that it is told when it comes back.
func (h *hub) cutOff(viewer int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped++
	if len(h.cut) < maxCutNotes {
		h.cut[strconv.FormatInt(viewer, 10)] = true
	}
}

func (h *hub) counts() (viewers int, dropped int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.viewers, h.dropped
}

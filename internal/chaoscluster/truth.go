package main

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// fire is one publish of a job by a leader.
type fire struct{ epoch, seq int64 }

// fate is the broker's answer to a fire, as far as the tap passed it on to the leader.
type fate struct {
	jid, queue string
	repeats    bool // an earlier leader left it in doubt
	sent       time.Time
	acked      time.Time
	nacked     time.Time
	connection *connection
}

func (f *fate) answered() bool { return !f.acked.IsZero() || !f.nacked.IsZero() }

// truth has all fires that the taps saw.
type truth struct {
	mu       sync.Mutex
	fires    map[fire]*fate
	last     *connection // the connection of the newest fire
	silences []silence
}

func newTruth() *truth { return &truth{fires: map[fire]*fate{}} }

// byJob returns the fires of each job, by jid. The caller holds t.mu.
func (t *truth) byJob() map[string][]fire {
	jobs := map[string][]fire{}
	for f, fate := range t.fires {
		jobs[fate.jid] = append(jobs[fate.jid], f)
	}
	return jobs
}

// connection is one AMQP connection of a sidecar to a node.
type connection struct {
	truth         *truth
	sidecar, node int
	channels      map[uint16]*channel
	proven        time.Time // when the newest fire with an ack was sent
	ended         time.Time
	cut           *atomic.Bool // its tap has been frozen
}

type channel struct {
	confirms bool
	tag      uint64 // of the newest publish
	exchange string // to which that was
	key      string // its routing key
	open     map[uint64]*fate
	unanswered
}

func (t *truth) connection(sidecar, node int, cut *atomic.Bool) *connection {
	return &connection{truth: t, sidecar: sidecar, node: node, channels: map[uint16]*channel{}, cut: cut}
}

func (c *connection) channel(n uint16) *channel {
	if c.channels[n] == nil {
		c.channels[n] = &channel{open: map[uint64]*fate{}}
	}
	return c.channels[n]
}

// fromSidecar records a frame from a sidecar.
func (c *connection) fromSidecar(f frame) {
	c.truth.mu.Lock()
	defer c.truth.mu.Unlock()
	ch := c.channel(f.channel)
	switch f.kind {
	case frameMethod:
		switch id, args := f.method(); id {
		case channelCloseOk:
			delete(c.channels, f.channel)
		case confirmSelect:
			ch.confirms = true
		case basicPublish:
			args.short()
			ch.exchange = args.shortString()
			ch.key = args.shortString()
			if ch.confirms {
				ch.tag++
			}
		}
	case frameHeader:
		headers, err := f.properties()
		if k, ok := fireOf(headers); ok && err == nil && ch.confirms {
			jid, _ := headers["millrace-jid"].(string)
			fate := &fate{jid: jid, queue: ch.key, repeats: headers["millrace-op"] == "refired", sent: time.Now(), connection: c}
			c.truth.fires[k], ch.open[ch.tag], c.truth.last = fate, fate, c
			ch.sent(ch.tag, published{ch.key, fate.sent})
		} else if ch.confirms && ch.exchange == "" && slices.Contains(needed, ch.key) {
			ch.sent(ch.tag, published{"", time.Now()})
		}
	}
}

// fromBroker records an answer of the broker.
func (c *connection) fromBroker(f frame) {
	if f.kind != frameMethod {
		return
	}
	c.truth.mu.Lock()
	defer c.truth.mu.Unlock()
	id, args := f.method()
	switch id {
	case channelCloseOk:
		delete(c.channels, f.channel)
		return
	case basicAck, basicNack:
	default:
		return
	}
	tag, multiple := args.longLong(), args.octet()&1 != 0
	ch, now := c.channel(f.channel), time.Now()
	answer := func(tag uint64, fate *fate) {
		if id == basicAck {
			fate.acked = now
			if fate.sent.After(c.proven) {
				c.proven = fate.sent
			}
		} else {
			fate.nacked = now
		}
		delete(ch.open, tag)
	}
	if s, ended := ch.answered(now, func(t uint64) bool { return t == tag || multiple && (t < tag || tag == 0) }); ended {
		c.keep(s)
	}
	if fate := ch.open[tag]; fate != nil {
		answer(tag, fate)
	}
	if !multiple {
		return
	}
	for t, fate := range ch.open {
		if t <= tag || tag == 0 {
			answer(t, fate)
		}
	}
}

func (c *connection) end() {
	c.truth.mu.Lock()
	defer c.truth.mu.Unlock()
	if c.ended.IsZero() {
		c.ended = time.Now()
	}
}

// leader returns the sidecar of the newest fire, and the node that it is connected to.
func (t *truth) leader() (sidecar, node int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil {
		return 0, 0, false
	}
	return t.last.sidecar, t.last.node, true
}

// open returns how many fires have no answer on the channels that the leader has. One that led
// before on the same connection has closed its own.
func (t *truth) open() (open openFires) {
	t.mu.Lock()
	defer t.mu.Unlock()
	open.of = map[string]int{}
	if t.last == nil || !t.last.ended.IsZero() {
		return open
	}
	for _, ch := range t.last.channels {
		for _, fate := range ch.open {
			open.total++
			if !fate.repeats {
				open.of[fate.queue]++
			}
		}
	}
	return open
}

// openFires is how many fires have no answer: of all queues, and of each queue without those that
// repeat what an earlier leader left in doubt. A leader sends these when it begins, all of them.
type openFires struct {
	total int
	of    map[string]int
}

// fireOf returns which fire a message is. ok is false for probes and burials.
func fireOf(headers map[string]any) (f fire, ok bool) {
	switch headers["millrace-op"] {
	case "fired", "triggered", "retried", "refired":
	default:
		return f, false
	}
	epoch, hasEpoch := whole(headers["millrace-epoch"])
	seq, hasSeq := whole(headers["millrace-seq"])
	return fire{epoch, seq}, hasEpoch && hasSeq
}

// whole returns a number of any of AMQP's integer types.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case int8:
		return int64(n), true
	case uint8:
		return int64(n), true
	case int:
		return int64(n), true
	}
	return 0, false
}

package chaos

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/sidecar"
	"github.com/millrace-jobs/millrace/wire"
)

// frozenFor is longer than the broker waits for the heartbeats of a leader, which come every 5
// seconds.
const frozenFor = 20 * time.Second

// followedWithin is how soon another sidecar must fire when the leader is frozen.
const followedWithin = 18 * time.Second

// frozen stops the leader of two sidecars for longer than its heartbeat, and lets it continue. The
// old leader must notice that it has a successor.
func frozen(w *world, perSecond, times int) {
	w.two()
	w.warmUp()
	stopCommands, stopFeed := w.command(10), w.feed(perSecond)
	var longest time.Duration
	for range times {
		for _, s := range w.slots {
			brokertest.EventuallyWithin(w.t, time.Minute, s.p.Ready, "%s is ready", s.name)
		}
		old := w.awaitLeader()
		w.await(old.p, aimFiring)
		epoch, _ := w.counter.newest()
		if err := old.p.Freeze(); err != nil {
			w.t.Fatal(err)
		}
		w.faults++
		since := time.Now()
		longest = max(longest, w.taken(epoch, since))
		w.pause(frozenFor + w.upTo(2*time.Second) - time.Since(since))
		if err := old.p.Thaw(); err != nil {
			w.t.Fatal(err)
		}
		brokertest.EventuallyWithin(w.t, time.Minute, func() bool { return !old.p.Leads() }, "%s notices that it was followed", old.name)
	}
	stopFeed()
	stopCommands()
	w.note = "other fires within " + longest.Round(time.Millisecond).String()
	w.exactlyOnce()
	w.must(longest <= followedWithin, "it took %v until the other fired", longest)
}

// network cuts, stalls and slows the connections of two sidecars. Each has its own proxies to the
// broker.
func network(w *world, perSecond int, lasting time.Duration) {
	var ways [][]*brokertest.Proxy
	for _, name := range []string{"x", "y"} {
		amqp, management := brokertest.NewProxy(w.t, w.v.AMQPURL()), brokertest.NewProxy(w.t, w.v.ManagementURL())
		way := []*brokertest.Proxy{amqp, management}
		s := w.slot(name, func(c *sidecar.Config) { c.AMQPURL, c.ManagementURL = amqp.URL(), management.URL() })
		if w.v.StreamURL() != "" {
			stream := brokertest.NewProxy(w.t, w.v.StreamURL())
			s.config.StreamURL = stream.URL()
			way = append(way, stream)
		}
		ways = append(ways, way)
		w.run(s)
	}
	w.awaitLeader()
	w.warmUp()
	stopCommands, stopFeed := w.command(10), w.feed(perSecond)
	for until := time.Now().Add(lasting); time.Now().Before(until); {
		w.disturb(ways)
		w.pause(w.upTo(4 * time.Second))
	}
	stopFeed()
	stopCommands()
	w.exactlyOnce()
}

// disturb makes the connections of one sidecar, or a part of them, fail for some time: most often
// the leader's.
func (w *world) disturb(ways [][]*brokertest.Proxy) {
	w.t.Helper()
	which := w.random.IntN(len(w.slots))
	if leader := w.leads(); leader != nil && w.chance(60) {
		for i, s := range w.slots {
			if s == leader {
				which = i
			}
		}
	}
	way := ways[which]
	if !w.chance(40) { // a single connection, because they can fail separately
		way = way[w.random.IntN(len(way)):][:1]
	}
	what, lasting := w.random.IntN(4), w.upTo(20*time.Second)
	if w.chance(60) {
		lasting = w.upTo(2 * time.Second)
	}
	for _, p := range way {
		switch what {
		case 0:
			p.Cut(w.t)
		case 1:
			p.Freeze(w.t)
		case 2:
			p.Stall(w.t)
		case 3:
			p.Slow(w.t, w.upTo(500*time.Millisecond))
		}
	}
	w.faults++
	w.t.Logf("%s: fault %d on %d connections for %v", w.slots[which].name, what, len(way), lasting)
	w.pause(lasting)
	for _, p := range way {
		p.Heal(w.t)
	}
}

// clock sets a sidecar's wall clock an hour forward and back, and by less, and kills the leader in
// between. Jobs that are due by its clock arrive, once. No job waits for a time that the clock has
// left again.
func clock(w *world, perSecond, times int) {
	w.otherClock = true
	binary, err := sidecar.BinaryWithClock()
	if err != nil {
		w.t.Fatal(err)
	}
	s := w.slot("s", func(c *sidecar.Config) { c.Binary, c.OwnClock = binary, true })
	w.run(s)
	w.awaitLeader()
	w.warmUp()
	stopCommands, stopFeed := w.command(10), w.feed(perSecond)
	ahead := []time.Duration{time.Hour, -time.Hour, 0, time.Minute, -time.Minute}
	for i := range times {
		by := ahead[i%len(ahead)]
		if err := s.p.SetClock(by); err != nil {
			w.t.Fatal(err)
		}
		w.faults++
		w.pause(w.upTo(2 * time.Second))
		w.dueBy(by, i)
		if w.chance(30) {
			w.await(s.p, aimFiring)
			w.kill(s)
			w.run(s)
			w.awaitLeader()
		}
	}
	if err := s.p.SetClock(0); err != nil {
		w.t.Fatal(err)
	}
	stopFeed()
	stopCommands()
	w.exactlyOnce()
}

// promptly is how soon a due job must arrive.
const promptly = 20 * time.Second

// dueBy publishes a job that is due by a clock that is ahead by this much, and waits for it.
func (w *world) dueBy(ahead time.Duration, i int) {
	w.t.Helper()
	jid := fmt.Sprintf("clock-%02d", i)
	w.publish(wire.Retries, w.entry(jid, wire.Retries, queues[i%len(queues)], time.Now().Add(ahead-time.Second), comes))
	w.row.jobs++
	brokertest.EventuallyWithin(w.t, promptly, func() bool { n, _ := w.counter.of(jid); return n > 0 }, "%s comes, the clock being %v ahead", jid, ahead)
}

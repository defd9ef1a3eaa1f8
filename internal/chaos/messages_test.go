package chaos

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// inFlight is how many messages a sidecar delivers at the same time.
const inFlight = 100

// unwritten is the time in which the broker writes acknowledgements, on a slow machine. RabbitMQ
// writes those of a classic queue every 0.2 seconds. Killed before that, it delivers the
// acknowledged jobs again.
const unwritten = 500 * time.Millisecond

// delayedMessages kills one of two sidecars again and again, and then the broker, while messages of
// an application fall due. Only these may arrive twice: messages that a killed sidecar was
// delivering, or all sidecars when the broker was killed; messages whose acknowledgement the broker
// had not written; and messages that a new leader fires again.
func delayedMessages(w *world, n, kills int, span, longest time.Duration) {
	for _, name := range []string{"x", "y"} {
		w.run(w.slot(name, func(c *sidecar.Config) { c.More = []string{"--deliver-to", `app\..*`} }))
	}
	w.awaitLeader()
	a := newApplication(w)
	w.queues = []string{messageQueue}
	done := a.produce(n, span, longest)
	for range kills {
		w.messagesCome()
		s := w.slots[w.random.IntN(len(w.slots))]
		w.kill(s)
		w.pause(w.upTo(300 * time.Millisecond))
		w.run(s)
	}
	w.messagesCome()
	open, twice := kills*inFlight, w.counter.copies()-w.counter.distinct()
	w.must(twice <= open, "%d messages came again after %d kills of a sidecar: more than %d", twice, kills, open)
	for range kills {
		w.messagesCome()
		since := time.Now().Add(-unwritten)
		w.v.Kill(w.t)
		w.faults++
		open += len(w.slots)*inFlight + a.since(since)
		w.pause(w.upTo(time.Second))
		w.v.Restart(w.t)
	}
	<-done
	brokertest.EventuallyWithin(w.t, 10*time.Minute, w.noneWaits, "no message waits for its time or for another attempt")
	r := w.reckon()
	a.reckon()
	again, repeated := w.deliveredAgain(r.doubledJIDs)
	w.must(again <= open, "%d messages came again: more than the %d that could be in flight", again, open)
	w.note = fmt.Sprintf("%d came again after kills of sidecars, %d of all that were in flight, and %d were fired again", twice, again, repeated)
}

// messagesCome waits until messages come, and for a moment more.
func (w *world) messagesCome() {
	w.t.Helper()
	was := w.counter.distinct()
	brokertest.EventuallyWithin(w.t, 2*time.Minute, func() bool { return w.counter.distinct() > was+20 }, "messages come")
	w.pause(w.upTo(50 * time.Millisecond))
}

// noneWaits reports whether no job is scheduled, and none is retried.
func (w *world) noneWaits() bool {
	for _, s := range w.slots {
		if o, ok, err := s.p.Overview(); ok && err == nil && s.p.Ready() {
			return o.Sets["scheduled-jobs"].Total == 0 && o.Sets["retries"].Total == 0
		}
	}
	return false
}

// deliveredAgain counts the copies of doubled messages. repeated are those of fires that no leader
// knew to be confirmed, and again are the others.
func (w *world) deliveredAgain(doubled []string) (again, repeated int) {
	unconfirmed := map[string]int{}
	for _, e := range w.epochs() {
		for seq, jid := range e.fires {
			if seq > e.confirmed {
				unconfirmed[jid]++
			}
		}
	}
	for _, jid := range doubled {
		n, _ := w.counter.of(jid)
		fired := min(n-1, unconfirmed[jid])
		repeated += fired
		again += n - 1 - fired
	}
	return again, repeated
}

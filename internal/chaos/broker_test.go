package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// brokerKilled kills the broker again and again while entries fall due. Nothing is lost, and only
// unconfirmed jobs arrive twice.
func brokerKilled(w *world, jobs, kills int) {
	w.run(w.slot("s", nil))
	w.awaitLeader()
	w.warmUp()
	stop := w.command(10)
	w.schedule(jobs, time.Now().Add(time.Second), time.Duration(kills+1)*2*time.Second)
	for range kills {
		s := w.awaitLeader()
		was := w.counter.distinct()
		brokertest.EventuallyWithin(w.t, time.Minute, func() bool { return w.counter.distinct() > was+50 || w.missing(w.counter) == 0 }, "jobs come again")
		w.await(s.p, aimFiring)
		w.v.Kill(w.t)
		w.faults++
		w.pause(w.upTo(time.Second))
		w.v.Restart(w.t)
	}
	w.awaitLeader()
	stop()
	if w.v.Features(w.t).TearsMessages {
		w.counter.forgetTorn()
	}
	r := w.reckon()
	all := w.epochs()
	w.unconfirmed = 0
	came := w.counter.furthest() // fires that the journal lost with the broker count too
	for _, e := range all[:len(all)-1] {
		if e.unconfirmed() || came[fmt.Sprint(e.number)] > e.confirmed {
			w.unconfirmed++
		}
	}
	open, sure := w.unsure(all, r.doubledJIDs)
	w.must(len(sure) == 0, "%d jobs came twice whose fires were confirmed: %v", len(sure), first(sure))
	w.must(w.unconfirmed >= (kills+1)/2, "%d of %d kills fell while fires were unconfirmed, that is too few to show anything", w.unconfirmed, kills)
	w.note = fmt.Sprintf("%d fires without a confirm, of which %d came twice", open, len(r.doubledJIDs))
}

// deletion is a queue or exchange that a user deletes.
type deletion struct {
	what string
	do   func(*amqp.Channel) error
}

// deletions returns everything that may be deleted at any time. A queue is deleted only while it is
// empty, because the jobs in it are lost with it.
func deletions() (all []deletion) {
	queue := func(name string) deletion {
		return deletion{"queue " + name, func(ch *amqp.Channel) error { _, err := ch.QueueDelete(name, false, true, false); return err }}
	}
	exchange := func(name string) deletion {
		return deletion{"exchange " + name, func(ch *amqp.Channel) error { return ch.ExchangeDelete(name, false, false) }}
	}
	unbind := func(queue, key, exchange string) deletion {
		return deletion{"binding of " + queue + " to " + exchange, func(ch *amqp.Channel) error { return ch.QueueUnbind(queue, key, exchange, nil) }}
	}
	for _, q := range queues {
		name := wire.QueuePrefix + q
		all = append(all, queue(name), unbind(name, q, wire.ExchangeRoute), unbind(name, q, wire.ExchangeDirect))
	}
	for _, name := range []string{wire.ExchangeDirect, wire.ExchangeDead, wire.ExchangeFire, wire.ExchangeBury, wire.ExchangeRoute, wire.Unrouted, wire.Control} {
		all = append(all, exchange(name))
	}
	all = append(all, unbind(wire.Journal, "", wire.ExchangeFire), unbind(wire.Journal, "", wire.ExchangeBury),
		queue(wire.DeadLetters), unbind(wire.DeadLetters, "", wire.ExchangeDead))
	return append(all, unbind(wire.Gated, "", wire.Unrouted),
		unbind(wire.DeadJobs, "", wire.ExchangeBury),
		deletion{"binding of " + wire.ExchangeRoute + " to " + wire.ExchangeFire, func(ch *amqp.Channel) error {
			return ch.ExchangeUnbind(wire.ExchangeRoute, "", wire.ExchangeFire, false, nil)
		}})
}

// deletedThings deletes queues and exchanges while entries fall due. Nothing is lost.
func deletedThings(w *world, perSecond int, lasting time.Duration) {
	w.run(w.slot("s", nil))
	w.awaitLeader()
	w.warmUp()
	stopCommands, stopFeed := w.command(10), w.feed(perSecond)
	w.deletedAt = map[string][]time.Time{}
	all := deletions()
	for until := time.Now().Add(lasting); time.Now().Before(until); w.pause(w.upTo(4 * time.Second)) {
		d := all[w.random.IntN(len(all))]
		err := d.do(w.v.Channel(w.t))
		w.t.Logf("%s deleted %s: %v", time.Now().Format(time.TimeOnly), d.what, err)
		if err == nil {
			w.faults++
			if name, isQueue := strings.CutPrefix(d.what, "queue "+wire.QueuePrefix); isQueue {
				w.deletedAt[name] = append(w.deletedAt[name], time.Now())
			}
		}
	}
	stopFeed()
	stopCommands()
	w.reckon()
	w.note = fmt.Sprintf("%d came again, %d went with their queue", w.doubled, w.gone)
}

// excuse removes the findings that a deletion explains. With an empty queue, the broker also
// deletes jobs that are on their way to it, although they are confirmed. While jobs.fire is not
// bound to the journal, no fire is journaled, so commands can still delete the fired entries.
func (w *world) excuse(r *reckoning, all []*epoch) {
	const about = 2 * time.Second // the journal has whole seconds
	if w.deletedAt == nil {
		return
	}
	r.lost = slices.DeleteFunc(r.lost, func(text string) bool {
		jid, _, _ := strings.Cut(text, " ")
		for _, e := range all {
			for _, at := range w.deletedAt[w.all[jid].queue] {
				if fired, ok := e.at[jid]; ok && at.Sub(fired).Abs() <= about {
					w.gone++
					return true
				}
			}
		}
		return false
	})
	r.wrong = slices.DeleteFunc(r.wrong, func(text string) bool { return strings.Contains(text, ": it came") })
}

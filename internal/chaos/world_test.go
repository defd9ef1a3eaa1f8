package chaos

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) {
	brokertest.Main(m)
}

// queues are the queues of the jobs.
var queues = []string{"a", "b", "c"}

// world is one run of a scenario: a virtual host, sidecars, a client that counts, and an account
// for each job.
type world struct {
	t       testing.TB
	v       *brokertest.Vhost
	random  *rand.Rand
	began   time.Time
	queues  []string // queues that are counted
	counter *counter
	accounts
	row

	mu       sync.Mutex
	slots    []*slot
	killed   []string // identities of processes that were killed
	lastKill time.Time
	serial   int
	sent     int
	aimedAt  int // kills that were aimed

	gone int // jobs that were lost with their queue
	// deletedAt has the deletions of job queues, by name. Jobs on their way to such a queue are
	// lost with it.
	deletedAt map[string][]time.Time
	// otherClock is set when a job may be early by this clock and not by the leader's.
	otherClock bool
}

// begin sets up a scenario. Its random choices depend on the seed and its name.
func begin(t testing.TB, v *brokertest.Vhost, seed uint64) *world {
	t.Helper()
	h := fnv.New64a()
	name := path.Base(t.Name())
	_, _ = h.Write([]byte(name))
	w := &world{t: t, v: v, random: rand.New(rand.NewPCG(seed, h.Sum64())), began: time.Now(), queues: queues}
	w.all = map[string]*account{}
	f := v.Features(t)
	w.row = row{name: name, broker: f.Product + " " + f.Version, seed: seed, broken: []string{"it did not end"}}
	t.Cleanup(func() { table.add(w.row) })
	return w
}

// warmUp makes the client consume, and fires one job to each queue, so that all queues are bound.
func (w *world) warmUp() {
	w.t.Helper()
	w.count()
	for _, q := range queues {
		jid := "warm-" + q
		w.publish(wire.ScheduledJobs, w.entry(jid, wire.ScheduledJobs, q, time.Now().Add(-time.Second), comes))
	}
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool { return w.missing(w.counter) == 0 }, "the first jobs arrive")
}

// count makes the client consume the counted queues.
func (w *world) count() {
	w.t.Helper()
	var names []string
	for _, q := range w.queues {
		names = append(names, wire.QueuePrefix+q)
	}
	w.counter = startCounter(w, names...)
}

// entry returns a job with a time, and opens its account.
func (w *world) entry(jid, stream, queue string, due time.Time, f fate) amqp.Publishing {
	due = due.Truncate(time.Microsecond)
	w.open(jid, stream, queue, due, f)
	form := `{"type":"scheduled_job","jid":%q,"scheduled_at":%f,"job":{"class":"C","args":[1],"queue":%q}}`
	if stream == wire.Retries {
		form = `{"type":"retry","jid":%q,"retry_at":%f,"retry_count":1,"job":{"class":"C","args":[1],"queue":%q}}`
	}
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Appendf(nil, form, jid, wire.Seconds(due), queue)}
}

func (w *world) publish(stream string, messages ...amqp.Publishing) {
	w.t.Helper()
	w.v.Publish(w.t, "", stream, messages...)
}

// schedule publishes n jobs that fall due one after another within span. Half are scheduled jobs,
// and half are retries.
func (w *world) schedule(n int, from time.Time, span time.Duration) {
	w.t.Helper()
	w.scheduleTo(queues, n, from, span)
}

// scheduleTo is schedule for these queues.
func (w *world) scheduleTo(queues []string, n int, from time.Time, span time.Duration) {
	w.t.Helper()
	batches := map[string][]amqp.Publishing{}
	for i := range n {
		stream := []string{wire.ScheduledJobs, wire.Retries}[w.sent%2]
		due := from.Add(span * time.Duration(i) / time.Duration(n))
		batches[stream] = append(batches[stream], w.entry(fmt.Sprintf("job-%06d", w.sent), stream, queues[w.sent%len(queues)], due, comes))
		w.sent++
	}
	for stream, messages := range batches {
		w.publish(stream, messages...)
	}
	w.row.jobs += n
}

// feed publishes jobs at an even pace until stop is called. Each falls due within a second.
func (w *world) feed(perSecond int) (stop func()) {
	const pause = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(pause); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				w.schedule(perSecond*int(pause/time.Millisecond)/1000, time.Now().Add(100*time.Millisecond), time.Second)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// chance returns true in percent of 100 cases.
func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

// upTo returns a random part of a time.
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.random.Int64N(int64(d))) }

// pause waits. The moment of the next fault is random, so there is no condition to wait for.
func (w *world) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.t.Context().Done():
	}
}

// quiet is how long nothing more must arrive before the scenario is over.
const quiet = 2 * time.Second

// patience is how long nothing may arrive before missing jobs count as lost.
const patience = time.Minute

// settle waits until all jobs that must arrive have arrived, and nothing more does.
func (w *world) settle() {
	w.t.Helper()
	copies, since := -1, time.Now()
	for {
		if n := w.counter.copies(); n != copies {
			copies, since = n, time.Now()
		}
		still := time.Since(since)
		if still > patience || still > quiet && w.missing(w.counter) == 0 && w.waiting() == 0 {
			return
		}
		w.pause(50 * time.Millisecond)
	}
}

// waiting returns the number of jobs in the queues.
func (w *world) waiting() (n int) {
	for _, q := range w.queues {
		n += w.v.QueueLength(w.t, wire.QueuePrefix+q)
	}
	return n
}

// reckon ends a scenario: it counts, and fills in the row.
func (w *world) reckon() reckoning {
	w.t.Helper()
	w.settle()
	p := w.leader(time.Minute)
	require.NotNil(w.t, p, "no sidecar leads in the end")
	r := w.accounts.reckon(w.counter, func(jid string) []string { return w.where(p, jid) })
	all := w.epochs()
	w.unconfirmed, w.settling = moments(all, w.killed)
	w.took = time.Since(w.began)
	w.broken = nil
	w.excuse(&r, all)
	w.lost, w.doubled = len(r.lost), len(r.doubled)
	for _, text := range first(r.lost) {
		jid, _, _ := strings.Cut(text, " ")
		w.t.Logf("lost: %s:%s", text, history(all, jid))
	}
	w.must(len(r.lost) == 0, "%d jobs are lost: %v", len(r.lost), first(r.lost))
	w.must(len(r.early) == 0 || w.otherClock, "%d jobs came early: %v", len(r.early), first(r.early))
	w.must(len(r.wrong) == 0, "%d jobs are not where they must be: %v", len(r.wrong), first(r.wrong))
	w.t.Logf("%d epochs, %d copies came more than once from the broker", len(all), w.counter.again)
	return r
}

// exactlyOnce checks the promise of most scenarios.
func (w *world) exactlyOnce() {
	w.t.Helper()
	r := w.reckon()
	w.must(len(r.doubled) == 0, "%d jobs came more than once: %v", len(r.doubled), first(r.doubled))
}

// must records a broken promise.
func (w *world) must(holds bool, format string, args ...any) {
	w.t.Helper()
	if !holds {
		text := fmt.Sprintf(format, args...)
		w.broken = append(w.broken, text)
		w.t.Errorf("seed %d: %s", w.seed, text)
	}
}

// first returns the first elements, as many as a person reads.
func first(all []string) []string { return all[:min(len(all), 20)] }

// two starts two sidecars, and waits until one leads.
func (w *world) two() {
	w.t.Helper()
	for _, name := range []string{"x", "y"} {
		w.run(w.slot(name, nil))
	}
	w.awaitLeader()
}

// shares say how many of ten faults kill a worker and a leader. The others kill the broker.
type shares struct{ workers, leaders int }

// killUntil kills workers, leaders and the broker, until there were so many faults.
func (w *world) killUntil(faults int, least, more time.Duration, of shares, killWorker func()) {
	w.t.Helper()
	for w.faults < faults {
		w.pause(least + w.upTo(more))
		switch n := w.random.IntN(10); {
		case n < of.workers:
			w.faults++
			killWorker()
		case n < of.workers+of.leaders || !w.v.CanKill():
			old := w.awaitLeader()
			w.kill(old)
			w.run(old)
			w.awaitLeader()
		default:
			w.faults++
			w.v.Kill(w.t)
			w.v.Restart(w.t)
			w.awaitLeader()
		}
	}
}

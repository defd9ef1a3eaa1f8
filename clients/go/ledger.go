package millrace

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

const (
	// aftermath is how long a broker may take to remove the exclusive queue of a dead process whose
	// jobs it delivers again.
	aftermath = 500 * time.Millisecond
	// grace is how long a process may take to connect again. Then its death counts, and its job may
	// be buried.
	grace = 10 * time.Second
	// readBack is how long a record may take to come back from the stream.
	readBack = 30 * time.Second
	// unendedKept is how many jobs a worker remembers whose end it could not record.
	unendedKept = 10_000
)

// ledger reads and writes the stream jobs.begins, with which workers find jobs that kill them.
// Without the stream, every job may begin.
type ledger struct {
	s    *session
	w    *Worker
	send func(context.Context, message) error

	mu      sync.Mutex
	begins  *begins
	usable  bool
	gone    map[string]bool // exclusive queues that no longer exist
	waiting map[key][]chan struct{}
}

func newLedger(s *session) *ledger {
	return &ledger{s: s, w: s.w, send: s.pub.publish, begins: newBegins(), gone: map[string]bool{}, waiting: map[key][]chan struct{}{}}
}

// open records that this process is alive, and starts to read. It reads second, because a reader
// of an empty stream keeps LavinMQ busy.
func (l *ledger) open(ctx context.Context) {
	if l.w.cfg.MaxDeaths < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readBack)
	defer cancel()
	err := l.publish(ctx, begin{Type: typeOpened, Identity: l.w.identity, Queue: l.s.control, Queues: l.w.consumed()})
	if err == nil {
		err = l.read()
	}
	if err != nil {
		l.w.cfg.Logger.Warn("millrace: jobs that kill their workers are not found: there is no stream for it", "stream", wire.JobBegins, "error", err)
		return
	}
	l.mu.Lock()
	l.usable = true
	l.mu.Unlock()
}

func (w *Worker) consumed() []string {
	var all []string
	for _, l := range w.lanes {
		all = append(all, l.queues...)
	}
	return all
}

// close records that this process has no jobs any more.
func (l *ledger) close() {
	if l.isUsable() {
		ctx, cancel := context.WithTimeout(l.s.ctx, settleTime)
		defer cancel()
		// If it fails, the process counts as dead, which is one of three deaths, by default, for
		// its jobs.
		_ = l.publish(ctx, begin{Type: typeClosed})
	}
}

func (l *ledger) isUsable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usable
}

func (l *ledger) publish(ctx context.Context, r begin) error {
	if r.Process == "" {
		r.Process = l.w.process
	}
	r.At = wire.Seconds(time.Now())
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return l.send(ctx, record(wire.JobBegins, body))
}

// read follows the stream from its first record, on its own channel.
func (l *ledger) read() error {
	ch, err := l.s.conn.Channel()
	if err != nil {
		return fmt.Errorf("millrace: open a channel: %w", err)
	}
	if err := ch.Qos(500, 0, false); err != nil {
		return fmt.Errorf("millrace: read %s: %w", wire.JobBegins, err)
	}
	records, err := ch.Consume(wire.JobBegins, l.w.process+"-begins", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	if err != nil {
		return fmt.Errorf("millrace: read %s: %w", wire.JobBegins, err)
	}
	l.s.start(func() {
		for d := range records {
			l.apply(d.Body)
			_ = d.Ack(false) // fails with the channel
		}
		l.mu.Lock()
		l.usable = false
		l.mu.Unlock()
	})
	return nil
}

func (l *ledger) apply(body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.begins.apply(body)
	if !ok || r.Type != typeBegun || r.Process != l.w.process {
		return
	}
	k := key{r.JID, r.Body}
	for _, c := range l.waiting[k] {
		close(c)
	}
	delete(l.waiting, k)
}

// begin records that a redelivered job begins, and returns how many processes died of it. ok is
// false if the job must not begin, because the worker stops or has lost the delivery.
func (l *ledger) begin(t *task, job *RawJob) (deaths int, ok bool) {
	if !l.isUsable() {
		return 0, true
	}
	if !t.pause(aftermath) {
		return 0, false
	}
	k := keyOf(job)
	blames := l.blame(k, job)
	read := l.expect(k)
	ctx, cancel := context.WithTimeout(l.s.ctx, readBack)
	defer cancel()
	if err := l.publish(ctx, begin{Type: typeBegun, JID: k.jid, Body: k.body, Blames: &blames}); err != nil {
		l.w.cfg.Logger.Warn("millrace: a job begins that was delivered before, and that cannot be written down", "jid", job.JID, "error", err)
		return 0, l.s.ctx.Err() == nil
	}
	select {
	case <-read:
	case <-ctx.Done():
		return 0, l.s.ctx.Err() == nil
	}
	if deaths = l.count(k, job.Queue); deaths < l.w.cfg.MaxDeaths {
		return deaths, true
	}
	// The job would be buried. But a process that seems dead may only have been cut off.
	if !t.pause(grace) {
		return 0, false
	}
	l.forgetGone()
	return l.count(k, job.Queue), true
}

// ended records that a job has ended whose begin was recorded. If this connection cannot, the next
// one does.
func (l *ledger) ended(k key) {
	if !l.isUsable() || l.writeEnded(k) != nil {
		l.w.owe(k)
	}
}

func (l *ledger) writeEnded(k key) error {
	ctx, cancel := context.WithTimeout(l.s.ctx, settleTime)
	defer cancel()
	return l.publish(ctx, begin{Type: typeEnded, JID: k.jid, Body: k.body})
}

// catchUp records the ends that other connections could not record, until the session ends. A job
// that outlives its connection may end at any time during the next one.
func (l *ledger) catchUp() {
	if !l.isUsable() {
		return
	}
	for {
		select {
		case k := <-l.w.unended:
			if l.writeEnded(k) != nil {
				l.w.owe(k)
				return
			}
		case <-l.s.ctx.Done():
			return
		}
	}
}

// owe keeps the key of a job whose end the next connection must record. Above the limit it drops
// the key: other workers then forget the job after 72 hours.
func (w *Worker) owe(k key) {
	select {
	case w.unended <- k:
	default:
	}
}

// expect returns a channel that is closed when this process's next begin of a job is read.
func (l *ledger) expect(k key) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{})
	l.waiting[k] = append(l.waiting[k], c)
	return c
}

func (l *ledger) blame(k key, job *RawJob) string {
	gone := l.look(k, job.Queue)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begins.blame(k, job.Queue, l.w.process, job.enqueuedAt, gone)
}

func (l *ledger) count(k key, queue string) int {
	gone := l.look(k, queue)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begins.deaths(k, l.w.process, gone)
}

// look returns the exclusive queues of processes that are dead. It checks the processes that matter
// for a job, and records new deaths.
func (l *ledger) look(k key, queue string) map[string]bool {
	l.mu.Lock()
	candidates := l.begins.maybeDead(k, queue, l.w.process)
	gone := map[string]bool{}
	for q := range l.gone {
		gone[q] = true
	}
	l.mu.Unlock()
	for process, q := range candidates {
		if gone[q] {
			continue
		}
		if exists, err := l.s.exists(q); exists || err != nil {
			continue
		}
		gone[q] = true
		l.mu.Lock()
		l.gone[q] = true
		l.mu.Unlock()
		ctx, cancel := context.WithTimeout(l.s.ctx, settleTime)
		_ = l.publish(ctx, begin{Type: typeDied, Process: process})
		cancel()
	}
	return gone
}

func (l *ledger) forgetGone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = map[string]bool{}
}

// pause waits while the task has its delivery. It returns false if the delivery is lost or the
// worker stops.
func (t *task) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.lost:
	case <-t.w.stopped.c:
	}
	return false
}

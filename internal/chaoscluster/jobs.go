package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// job is an entry that was published.
type job struct {
	queue string
	due   time.Time
	sure  bool // the broker confirmed it, so it must arrive
}

// jobs has all published jobs, and their deliveries.
type jobs struct {
	mu          sync.Mutex
	all         map[string]*job
	came        map[string]*arrival
	newest      time.Time      // when a job last arrived that was not redelivered
	redelivered int            // copies of one fire that the broker redelivered
	again       int            // copies of one fire that the broker did not mark as redelivered
	strange     int            // deliveries that were never published
	stored      map[string]int // by jid, how often scheduled_jobs has an entry
	moments     []moment       // when jobs first arrived, in order
	messages    bool           // the jobs are delayed messages
}

// arrival records the deliveries of one job.
type arrival struct {
	first time.Time
	fires map[fire]bool
	bare  int // copies that do not say which fire they are
}

func (a *arrival) copies() int { return len(a.fires) + a.bare }

func newJobs() *jobs {
	return &jobs{all: map[string]*job{}, came: map[string]*arrival{}}
}

func (j *jobs) add(jid, queue string, due time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all[jid] = &job{queue: queue, due: due}
}

func (j *jobs) confirm(jid string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all[jid].sure = true
}

// drop forgets a job that is not expected any more. It reports whether the job has arrived.
func (j *jobs) drop(jid string) (arrived bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.came[jid] != nil {
		return true
	}
	delete(j.all, jid)
	return false
}

// arrive records a delivery.
func (j *jobs) arrive(jid string, headers map[string]any, redelivered bool) {
	f, known := fireOf(headers)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all[jid] == nil {
		j.strange++
		return
	}
	now := time.Now()
	a := j.came[jid]
	if a == nil {
		a = &arrival{first: now, fires: map[fire]bool{}}
		j.came[jid] = a
	}
	repeated := known && a.fires[f]
	if redelivered && (repeated || !known && a.bare > 0) {
		j.redelivered++
		return
	}
	j.newest = now
	switch {
	case repeated:
		j.again++
	case known:
		a.fires[f] = true
	default:
		a.bare++
	}
}

// jidOf returns the jid of a delivery.
func (j *jobs) jidOf(d amqp.Delivery) string {
	if j.messages {
		jid, _ := d.Headers["millrace-jid"].(string)
		return jid
	}
	var body struct{ JID string }
	_ = json.Unmarshal(d.Body, &body)
	return body.JID
}

// early returns how many jobs arrived before they were due. The caller holds the lock.
func (j *jobs) early() (n int) {
	for jid, a := range j.came {
		if a.first.Before(j.all[jid].due.Truncate(time.Microsecond)) {
			n++
		}
	}
	return n
}

// missing returns the jobs that must arrive and have not.
func (j *jobs) missing() (all []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for jid, job := range j.all {
		if job.sure && j.came[jid] == nil {
			all = append(all, jid)
		}
	}
	return all
}

// anyMissing reports whether jobs of these queues are missing. The caller holds the lock.
func (j *jobs) anyMissing(queues map[string]bool) bool {
	for jid, job := range j.all {
		if job.sure && j.came[jid] == nil && queues[job.queue] {
			return true
		}
	}
	return false
}

func (j *jobs) arrived() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.came)
}

func (j *jobs) last() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.newest
}

// publisher publishes entries on a channel, and records which ones the broker confirmed.
type publisher struct {
	jobs     *jobs
	ch       *amqp.Channel
	returned chan amqp.Return
}

func (j *jobs) publisher(conn *amqp.Connection) (*publisher, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	// The library blocks until a returned message is received, and each batch is smaller than this.
	return &publisher{j, ch, ch.NotifyReturn(make(chan amqp.Return, mostPublished))}, nil
}

// mostPublished is the largest number of entries in one batch.
const mostPublished = 100_000

// publish publishes entries. It never repeats an entry that is returned or not confirmed: such a
// job may arrive or not.
func (p *publisher) publish(ctx context.Context, entries []entry) error {
	if len(entries) > mostPublished {
		return fmt.Errorf("%d entries are more than %d", len(entries), mostPublished)
	}
	sent := map[string]*amqp.DeferredConfirmation{}
	for _, e := range entries {
		p.jobs.add(e.jid, e.queue, e.due)
		body := e.body()
		if p.jobs.messages {
			body = e.message()
		}
		c, err := p.ch.PublishWithDeferredConfirmWithContext(ctx, "", "scheduled_jobs", true, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: e.jid, Body: body})
		if err != nil {
			return err
		}
		sent[e.jid] = c
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	confirmed := map[string]bool{}
	for jid, c := range sent {
		ok, err := c.WaitContext(ctx)
		confirmed[jid] = ok && err == nil
	}
	// RabbitMQ first returns a message, and then confirms it.
	for len(p.returned) > 0 {
		r := <-p.returned
		confirmed[r.MessageId] = false
	}
	refused := 0
	for jid, ok := range confirmed {
		if ok {
			p.jobs.confirm(jid)
		} else {
			refused++
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d entries were returned or not confirmed", refused, len(sent))
	}
	return nil
}

// entry is a scheduled job to be published.
type entry struct {
	jid, queue string
	due        time.Time
}

func (e entry) body() []byte {
	return fmt.Appendf(nil, `{"type":"scheduled_job","jid":%[1]q,"scheduled_at":%[2]f,"job":{"jid":%[1]q,"class":"C","args":[1],"queue":%[3]q}}`,
		e.jid, float64(e.due.UnixMicro())/1e6, e.queue)
}

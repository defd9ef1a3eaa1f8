package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// job is an entry that was published.
type job struct {
	queue string
	due   time.Time
	sure  bool // the broker confirmed it: it must come
}

// jobs are all that were published, and what came of them.
type jobs struct {
	mu          sync.Mutex
	all         map[string]*job
	came        map[string]*arrival
	newest      time.Time      // when something came that the broker had not given out before
	redelivered int            // copies of one fire that the broker gave out again
	again       int            // copies of one fire that it did not call redelivered
	strange     int            // what came and was never published
	stored      map[string]int // by jid, how often scheduled_jobs has what was published once
}

// arrival is what came of one job.
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

// arrive notes a delivery.
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

// missing are the jobs that must come and have not.
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

// publish publishes entries on one channel and notes which the broker confirmed. One that is not
// confirmed is never repeated: it may come or not.
func (j *jobs) publish(ctx context.Context, ch *amqp.Channel, entries []entry) error {
	type sent struct {
		jid     string
		confirm *amqp.DeferredConfirmation
	}
	var all []sent
	for _, e := range entries {
		j.add(e.jid, e.queue, e.due)
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", "scheduled_jobs", true, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: e.jid, Body: e.body()})
		if err != nil {
			return err
		}
		all = append(all, sent{e.jid, c})
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	refused := 0
	for _, s := range all {
		ok, err := s.confirm.WaitContext(ctx)
		if err != nil {
			return err
		}
		if ok {
			j.confirm(s.jid)
		} else {
			refused++
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d entries were not confirmed", refused, len(all))
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

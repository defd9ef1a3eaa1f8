package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	mostLeased    = 100
	longestWait   = 20 * time.Second
	shortestLease = time.Second
	longestLease  = 24 * time.Hour
	usualLease    = time.Minute
	lookAgain     = 200 * time.Millisecond // while a worker waits for a job
	takeBudget    = 10 * time.Second
)

// leasesAPI lends jobs to workers over HTTP.
type leasesAPI struct {
	entries  *tracker.Reader
	records  *records
	leader   *leader
	health   *healthAPI
	onQueues func(ctx context.Context, do func(conn *broker.Conn) error) error
	publish  func(ctx context.Context, m wire.Message) error
	stopping <-chan struct{}
	now      func() time.Time
	log      *slog.Logger

	failing singleflight.Group // leases whose failure is being recorded
}

type leaseTerms struct {
	max   int
	wait  time.Duration
	lasts time.Duration
}

func readTerms(in *problem.Request) leaseTerms {
	var body struct {
		Max   *int64 `json:"max"`
		Wait  *int64 `json:"wait_ms"`
		Lasts *int64 `json:"lease_ms"`
	}
	in.Body(&body)
	return leaseTerms{
		max:   int(within(in, "max", body.Max, 1, 1, mostLeased)),
		wait:  time.Duration(within(in, "wait_ms", body.Wait, 0, 0, longestWait.Milliseconds())) * time.Millisecond,
		lasts: lastsOf(in, body.Lasts),
	}
}

func lastsOf(in *problem.Request, ms *int64) time.Duration {
	n := within(in, "lease_ms", ms, usualLease.Milliseconds(), shortestLease.Milliseconds(), longestLease.Milliseconds())
	return time.Duration(n) * time.Millisecond
}

func within(in *problem.Request, name string, given *int64, otherwise, least, most int64) int64 {
	if given == nil {
		return otherwise
	}
	if *given < least || *given > most {
		in.BadRequest("member %s is %d: it must be from %d to %d", name, *given, least, most)
	}
	return *given
}

// take takes jobs from a queue. Each becomes an entry that is due when its lease ends, and then
// leaves the queue: a crash in between leaves both, so a job may come twice and is never lost.
func (l *leasesAPI) take(in *problem.Request) error {
	name, terms := readQueue(in), readTerms(in)
	if in.Err() != nil {
		return in.Err()
	}
	ctx := in.Request().Context()
	if l.health.checkLeader(ctx) != "" { // no leader could settle a lease, or bring a job back
		return problem.FromReply(problem.NoLeader)
	}
	taken, err := l.takeJobs(ctx, name, terms)
	if err != nil {
		return err
	}
	l.awaitTaken(ctx, taken)
	return writeJSON(in, taken)
}

// takeJobs takes jobs as they come, until there are some or the time is over.
func (l *leasesAPI) takeJobs(ctx context.Context, name string, terms leaseTerms) (taken []answer.Lease, err error) {
	taken = []answer.Lease{}
	ctx, cancel := context.WithTimeout(ctx, terms.wait+takeBudget)
	defer cancel()
	until := time.Now().Add(terms.wait)
	err = l.onQueues(ctx, func(conn *broker.Conn) error {
		for {
			now, err := l.takeNow(ctx, conn, name, terms)
			if taken = append(taken, now...); err != nil || len(taken) > 0 {
				return err
			}
			pause := min(lookAgain, time.Until(until))
			if pause <= 0 {
				return nil
			}
			select {
			case <-time.After(pause):
			case <-l.stopping:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	if len(taken) > 0 { // the client must know of these, also if others failed
		return taken, nil
	}
	return taken, brokerProblem(err)
}

// takeNow takes the jobs that are there; none of a queue that is paused.
func (l *leasesAPI) takeNow(ctx context.Context, conn *broker.Conn, name string, terms leaseTerms) ([]answer.Lease, error) {
	full := wire.QueuePrefix + name
	waiting, _, err := conn.Queues().Depth(ctx, full)
	if _, paused := l.entries.Paused()[name]; err != nil || paused || waiting == 0 {
		return nil, err
	}
	// Jobs that were taken become leases, also if the client has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBudget)
	defer cancel()
	return broker.Transfer(ctx, conn, full, terms.max, func(d wire.Delivery) (*wire.Message, *answer.Lease, error) {
		slot, ranOut := "", 0
		if l.entries.Trusts(&wire.Record{UserID: d.UserID}) {
			slot, _ = d.Headers[wire.HeaderSlot].(string)
			ranOut = wire.RanOut(&d)
		}
		if runs, err := l.claim(ctx, slot); err != nil || !runs {
			return nil, nil, err
		}
		m, lease := l.lend(&d, name, slot, ranOut, terms.lasts)
		return &m, lease, nil
	})
}

// claim asks, as a worker does, whether a job that holds a slot may run: it may have ended, or
// another copy of it runs.
func (l *leasesAPI) claim(ctx context.Context, slot string) (runs bool, err error) {
	if slot == "" {
		return true, nil
	}
	reply := l.leader.ask(ctx, wire.Command{Command: wire.CommandClaim, Slot: slot, Process: wire.NewLeaseID(wire.Lease{At: l.now()})})
	switch {
	case reply.Status == wire.StatusBad: // the header is no slot: a worker would ask for ever
		return true, nil
	case reply.Claim == "":
		return false, problem.Unavailable(errors.New(reply.Reason), "the leader does not say now whether a job with a limit may run")
	}
	return reply.Claim == wire.ClaimRun, nil
}

// lend makes a lease of a job, or does with it what a worker does with a job that it does not run.
func (l *leasesAPI) lend(d *wire.Delivery, queue, slot string, ranOut int, lasts time.Duration) (wire.Message, *answer.Lease) {
	now := l.now()
	job, err := wire.LeasedJob(d, queue)
	if err != nil {
		return rejectedMessage(d, queue), nil
	}
	trace := wire.TraceOf(d.Headers)
	if !job.ExpiresAt.IsZero() && job.ExpiresAt.Before(now) { // the leader handles expired jobs
		return entryMessage(wire.ScheduledJobs, &job, trace, wire.ScheduledJob(job.JID, wire.Seconds(now), job.Raw), slot), nil
	}
	if ranOut >= wire.MaxRunOut {
		f := wire.Failure{JID: job.JID, RetryCount: job.RetryCount, ErrorClass: wire.ReasonPoison, ErrorMessage: fmt.Sprintf("its lease ran out %d times", ranOut)}
		return entryMessage(wire.DeadJobs, &job, trace, f.Dead(queue, job.Raw, wire.ReasonPoison, now), slot), nil
	}
	until := now.Add(lasts)
	id := wire.NewLeaseID(wire.Lease{RanOut: ranOut, At: now})
	m, err := wire.LeaseMessage(id, until, &job, trace, slot)
	if err != nil {
		return rejectedMessage(d, queue), nil
	}
	m.Timestamp = now
	return m, &answer.Lease{ID: id, Until: wire.Seconds(until), JID: job.JID, Class: job.Class, Queue: queue, Attempt: job.RetryCount + 1, RanOut: ranOut, Job: job.Raw}
}

// entryMessage returns the record of a job that a worker would write. It ends the slot that the job
// holds, if it holds one.
func entryMessage(stream string, job *wire.Job, trace string, record []byte, slot string) wire.Message {
	m := wire.Message{Key: stream, MessageID: wire.Property(job.JID), Type: wire.Property(job.Class), Headers: wire.TraceHeaders(trace), Body: record}
	if slot != "" {
		if m.Headers == nil {
			m.Headers = map[string]any{}
		}
		m.Headers[wire.HeaderSlot] = slot
	}
	return m
}

// rejectedMessage sends a job where the broker sends what a worker rejects.
func rejectedMessage(d *wire.Delivery, queue string) wire.Message {
	return wire.Message{Exchange: wire.ExchangeDead, Key: queue, MessageID: wire.Property(d.MessageID), Timestamp: d.Timestamp, Body: d.Body}
}

// awaitTaken waits until this sidecar has read the leases, so that it finds them when they end.
func (l *leasesAPI) awaitTaken(ctx context.Context, taken []answer.Lease) {
	l.leader.readBack(ctx, readBackLimit, func() bool {
		return !slices.ContainsFunc(taken, func(one answer.Lease) bool {
			found, err := l.entries.Find(wire.ScheduledJobs, one.ID)
			return err == nil && len(found) == 0
		})
	})
}

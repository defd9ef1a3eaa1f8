package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// A queue that somebody deletes takes with it what is not acknowledged, and RabbitMQ calls a queue empty that has nothing else. What a relay
// has at hand then is nowhere else.

// rescueWithin bounds how long that may take, while the epoch may end.
const rescueWithin = 10 * time.Second

// rescue publishes what a relay had of its queue, and what waits besides, if the queue is gone. message gives what becomes of each.
func (r *relay) rescue(ctx context.Context, log *slog.Logger, conn *broker.Conn, waiting []wire.Delivery, message func(wire.Delivery) wire.Message) error {
	all := slices.Concat(r.inFlight(), waiting, r.from.Left())
	all = slices.DeleteFunc(all, func(d wire.Delivery) bool { return isProbe(conn, d) })
	if !r.from.Cancelled() || len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rescueWithin)
	defer cancel()
	if there, err := conn.QueueExists(ctx, r.queue); there || err != nil { // a broker that went away has its jobs still
		return err
	}
	pub, err := conn.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	for i, d := range all {
		if err := pub.Send(ctx, message(d)); err != nil {
			log.Error("scheduler: somebody deleted a queue, and what was at hand of it is lost", "queue", r.queue, "messages", len(all)-i, "error", err)
			return err
		}
	}
	log.Warn("scheduler: somebody deleted a queue: what was at hand of it is kept all the same", "queue", r.queue, "messages", len(all))
	return nil
}

// inFlight is what was published, in that order, and is not confirmed.
func (r *relay) inFlight() (all []wire.Delivery) {
	for _, tag := range slices.Sorted(maps.Keys(r.flight)) {
		all = append(all, r.flight[tag])
	}
	return all
}

// rescued enters a job that waited for its queue as one that is due: whoever leads fires it once the way to the queues stands again.
func (s *Scheduler) rescued(d wire.Delivery) wire.Message {
	body, jid, err := rescuable(d)
	if err != nil {
		return s.rejection(wire.Unrouted, err.Error(), d.Body)
	}
	return wire.Carry(wire.ScheduledJobs, jid, wire.ScheduledJob(jid, now(), body), nil)
}

func rescuable(d wire.Delivery) (body []byte, jid string, err error) {
	if body, err = wire.WithQueue(d.Body, d.Key); err != nil {
		return nil, "", err
	}
	job, err := wire.ParseJob(body)
	if err != nil {
		return nil, "", err
	}
	if job.Queue != d.Key {
		return nil, "", fmt.Errorf("somebody deleted %s, where this job waited for queue %q; it says that it is for %q", wire.Unrouted, d.Key, job.Queue)
	}
	return body, cmp.Or(job.JID, randomJID()), nil
}

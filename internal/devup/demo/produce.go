package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Classes of jobs.
const (
	sendEmail    = "SendEmail"     // always works
	resizeImage  = "ResizeImage"   // fails now and then, and works when it is tried again
	chargeCard   = "ChargeCard"    // critical, and always works
	sendReminder = "SendReminder"  // for later
	importUsers  = "ImportUsers"   // never works: it ends among the dead
	cleanUp      = "CleanUp"       // periodic, and always works
	dailyReport  = "DailyReport"   // the same
	importOrders = "ImportOrders"  // limited: one at a time for each shop
	exportOrders = "ExportOrders"  // for the governed queue
	reindex      = "Reindex"       // unique: the newest one of a shop runs, a while later
	warmCache    = "WarmCache"     // unique: at most one of a shop in a while
	everyDoomed  = 6000            // one in so many jobs is such a one, five minutes apart at the default rate
	firstDoomed  = 60              // so that the first comes soon
	atMostAhead  = 8 * time.Second // how far ahead reminders are scheduled

	everyDelayed = 200              // one in so many is a delayed message: ten seconds at the default rate
	messageAhead = 10 * time.Second // how long it waits

	everyUpload = 200 // after so many jobs, a shop uploads its orders: ten seconds at the default rate
	uploaded    = 6   // jobs of an upload

	firstExport, lastExport = 20, 40 // of so many jobs, those in between are exports

	everyUnique = 20 // one in so many is such a job, one a second at the default rate
)

// known are the classes that the worker runs.
var known = []string{sendEmail, resizeImage, chargeCard, sendReminder, importUsers, cleanUp, dailyReport, importOrders, exportOrders, reindex, warmCache}

// produce enqueues jobs at a steady rate until ctx ends.
func (d *Demo) produce(ctx context.Context, conn *amqp.Connection) error {
	p, err := newPublisher(conn)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second / time.Duration(d.Rate))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := p.next(ctx, d.counts.enqueued.Load()); err != nil {
			return err
		}
		d.counts.enqueued.Add(1)
	}
}

// next publishes job number n.
func (p publisher) next(ctx context.Context, n int64) error {
	switch {
	case n%everyDoomed == firstDoomed:
		return p.toQueue(ctx, queueLow, newJob(importUsers, queueLow, 2, fmt.Sprintf("users-%d.csv", n)))
	case n%everyDelayed == everyDelayed-1:
		return p.toStream(ctx, scheduledJobs, scheduled(newMessage("cart.abandoned", fmt.Sprintf(`{"cart":%d}`, n)), time.Now().Add(messageAhead)))
	case n%everyUpload >= everyUpload/2 && n%everyUpload < everyUpload/2+uploaded:
		return p.toStream(ctx, gatedJobs, limited(newJob(importOrders, queueDefault, 5, n), shop(n/everyUpload)))
	case n%10 == 3:
		ahead := time.Second + rand.N(atMostAhead-time.Second)
		return p.toStream(ctx, scheduledJobs, scheduled(newJob(sendReminder, queueDefault, 5, n), time.Now().Add(ahead)))
	case n%10 == 7:
		return p.toQueue(ctx, queueCritical, newJob(chargeCard, queueCritical, 5, n, "EUR 4.99"))
	case n%everyUnique == 9:
		return p.toStream(ctx, gatedJobs, unique(newJob(reindex, queueLow, 5, shop(n/everyUnique), n),
			map[string]any{"by": []string{"class", "args.0"}, "on": "replace", "wait": 5, "max": 15}))
	case n%everyUnique == everyUnique-1:
		return p.toStream(ctx, gatedJobs, unique(newJob(warmCache, queueLow, 5, shop(n/everyUnique)), map[string]any{"for": 20}))
	case n%everyUpload >= firstExport && n%everyUpload < lastExport:
		err := p.toQueue(ctx, queueExports, newJob(exportOrders, queueExports, 5, shop(min(n%4, 1)), n))
		if errors.Is(err, errRefused) { // the queue is full
			return nil
		}
		return err
	case n%4 == 2:
		return p.toQueue(ctx, queueLow, newJob(resizeImage, queueLow, 5, fmt.Sprintf("image-%d.png", n)))
	default:
		return p.toQueue(ctx, queueDefault, newJob(sendEmail, queueDefault, 5, fmt.Sprintf("user%d@example.com", n), "Hello!"))
	}
}

func newJob(class, queue string, retry int, args ...any) map[string]any {
	return map[string]any{
		"jid":         newJID(),
		"class":       class,
		"args":        args,
		"queue":       queue,
		"retry":       retry,
		"retry_count": 0,
		"enqueued_at": seconds(time.Now()),
	}
}

// shop returns the name of one of the three shops.
func shop(n int64) string { return fmt.Sprintf("shop-%d", n%3+1) }

// unique returns a job that is unique.
func unique(job, how map[string]any) map[string]any {
	job["gate"] = map[string]any{"unique": how}
	return job
}

// limited returns a job that limits count, under a key.
func limited(job map[string]any, key string) map[string]any {
	job["gate"] = map[string]any{"key": key}
	return job
}

// newMessage returns the job that publishes a message to the exchange events.
func newMessage(key, body string) map[string]any {
	return newJob("millrace.Message", "millrace.messages", 25, map[string]any{"exchange": events, "routing_key": key, "body": body})
}

func scheduled(job map[string]any, at time.Time) map[string]any {
	return map[string]any{
		"type":         "scheduled_job",
		"jid":          job["jid"],
		"scheduled_at": seconds(at),
		"job":          job,
	}
}

func newJID() string { return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) }

package sidekiq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// inward moves jobs from Redis to the broker.
type inward struct {
	rules Rules
	store *store
	cfg   broker.Config
	log   *slog.Logger
	link  *link // nil while there is no connection

	left    map[string]int // jobs that stay, by reason, found in the pass that is under way
	said    map[string]int // what the log said last
	saidAt  time.Time
	refused map[string]bool // jobs that no broker can take
}

const (
	batchSize = 100                    // jobs that may come twice when the bridge is killed
	fairShare = 5000                   // jobs of one source before the others have their turn
	idle      = 200 * time.Millisecond // between two passes that found nothing
	sayEvery  = time.Minute
)

// run moves jobs until ctx ends.
func (in *inward) run(ctx context.Context) {
	in.refused = map[string]bool{}
	defer func() { in.link.close() }()
	retry := pause.Growing(longestPause)
	for ctx.Err() == nil {
		begun := time.Now()
		moved, err := in.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			in.log.Warn("jobs wait in Redis", "error", err)
			in.link.close()
			in.link = nil
			_ = pause.For(ctx, retry.NextBackOff())
			continue
		case moved == 0:
			in.sayLeft()
			// All jobs that stay are looked at in each pass. That must not keep Redis busy.
			_ = pause.For(ctx, max(idle, 10*time.Since(begun)))
		}
		retry.Reset()
	}
}

// pass goes through all sources once, and returns how many jobs were moved.
func (in *inward) pass(ctx context.Context) (moved int, err error) {
	in.left = map[string]int{}
	queues, err := in.store.queues(ctx)
	if err != nil {
		return 0, err
	}
	sources := slices.Clone(sets)
	for _, queue := range slices.Sorted(slices.Values(queues)) {
		if in.rules.takesList(queue) {
			sources = append(sources, listOf(queue))
		}
	}
	for _, from := range sources {
		n, err := in.drain(ctx, from)
		if moved += n; err != nil {
			return moved, fmt.Errorf("%s: %w", from.key, err)
		}
	}
	return moved, nil
}

// drain moves the jobs of a source.
func (in *inward) drain(ctx context.Context, from source) (moved int, err error) {
	for skip := int64(0); moved < fairShare; {
		if err := in.enter(ctx, from); err != nil {
			return moved, err
		}
		items, err := in.store.peek(ctx, from, skip, batchSize)
		if err != nil || len(items) == 0 {
			return moved, err
		}
		wanted := in.wanted(from, items)
		skip += int64(len(items) - len(wanted))
		if len(wanted) == 0 {
			continue
		}
		taken, err := in.store.take(ctx, from, wanted)
		if err != nil {
			return moved, err
		}
		moved += len(taken)
	}
	return moved, in.enter(ctx, from)
}

// wanted returns the items that can come in, and counts the others.
func (in *inward) wanted(from source, items []item) (wanted []item) {
	for _, i := range items {
		_, err := in.rules.in(from.place, []byte(i.job), i.at())
		switch {
		case in.refused[i.job]:
			in.left["the broker refuses it"]++
		case err == nil:
			wanted = append(wanted, i)
		case errors.As(err, new(reason)):
			in.left[err.Error()]++
		default:
			in.left["no job: "+err.Error()]++
		}
	}
	return wanted
}

// enter publishes what is in the private list of a source, and removes what the broker has
// confirmed. After an error the rest is there when enter is called again.
func (in *inward) enter(ctx context.Context, from source) error {
	for {
		items, err := in.store.waiting(ctx, from, batchSize)
		if err != nil || len(items) == 0 {
			return err
		}
		if in.link == nil {
			if in.link, err = openLink(ctx, in.cfg); err != nil {
				return err
			}
		}
		if err := in.enterBatch(ctx, from, items); err != nil {
			return err
		}
	}
}

func (in *inward) enterBatch(ctx context.Context, from source, items []item) error {
	var (
		sent     []item
		messages []wire.Message
	)
	for _, i := range items {
		m, err := in.rules.in(from.place, []byte(i.job), i.at())
		if err != nil { // the rules have changed since it was taken
			if err := in.store.putBack(ctx, from, i); err != nil {
				return err
			}
			continue
		}
		sent, messages = append(sent, i), append(messages, m)
	}
	confirmed, failed := in.link.publish(messages)
	done := make([]item, 0, len(sent))
	for n, i := range sent {
		switch {
		case confirmed[n]:
			done = append(done, i)
		case errors.Is(failed[n], broker.ErrUnpublishable):
			in.refused[i.job] = true
			in.log.Error("no broker can take this job: it stays in Redis", "place", from.key, "jid", messages[n].MessageID, "error", failed[n])
			if err := in.store.putBack(ctx, from, i); err != nil {
				return err
			}
		}
	}
	// A job whose confirm was seen must not be published again, even if ctx has ended meanwhile.
	if err := in.store.settle(context.WithoutCancel(ctx), from, done); err != nil {
		return err
	}
	return in.link.err(failed)
}

// sayLeft logs which jobs stay in Redis, when that changes and once a minute.
func (in *inward) sayLeft() {
	if len(in.left) == 0 && len(in.said) == 0 || maps.Equal(in.left, in.said) && time.Since(in.saidAt) < sayEvery {
		return
	}
	for _, why := range slices.Sorted(maps.Keys(in.left)) {
		in.log.Warn("jobs stay in Redis", "reason", why, "jobs", in.left[why])
	}
	in.said, in.saidAt = in.left, time.Now()
}

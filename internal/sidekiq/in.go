package sidekiq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

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

	// single are the sources whose jobs are published one by one, because the broker has closed the
	// channel over one of them. The number is how many of them are left.
	single  map[string]int
	refused map[string]bool // jobs that no broker can take

	left   map[string]int // jobs that stay, by reason, found in the pass that is under way
	said   map[string]bool
	saidAt time.Time
}

const (
	batchSize = 100  // jobs that may come twice when the bridge is killed
	fairShare = 5000 // jobs of one source before the others have their turn
	sayEvery  = time.Minute

	// Between two passes that found nothing. All jobs that stay are looked at in each pass, which
	// must not keep Redis busy: ten times as long as the pass took, within these bounds.
	shortestIdle = 200 * time.Millisecond
	longestIdle  = 5 * time.Second
)

func newInward(b *Bridge) *inward {
	return &inward{
		rules: b.cfg.Rules, store: b.store, cfg: b.cfg.Broker, log: b.cfg.Log,
		single: map[string]int{}, refused: map[string]bool{}, said: map[string]bool{},
	}
}

// run moves jobs until ctx ends, or another bridge has the lock.
func (in *inward) run(ctx context.Context) {
	defer func() { in.link.close() }()
	for retry := pause.Growing(longestPause); ctx.Err() == nil; {
		begun := time.Now()
		moved, err := in.pass(ctx)
		in.sayLeft()
		switch {
		case errors.Is(err, errLock), ctx.Err() != nil:
			return
		case err != nil:
			in.log.Warn("jobs wait in Redis", "error", err)
			_ = pause.For(ctx, retry.NextBackOff())
			continue
		case moved == 0:
			_ = pause.For(ctx, min(max(shortestIdle, 10*time.Since(begun)), longestIdle))
		}
		retry.Reset()
	}
}

// pass goes through all sources once, and returns how many jobs were moved. A queue that takes no
// jobs does not hold up the others.
func (in *inward) pass(ctx context.Context) (moved int, err error) {
	in.left = map[string]int{}
	taken, err := in.store.taken(ctx)
	if err != nil {
		return 0, err
	}
	sources, err := in.sources(ctx)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, from := range taken { // also what the rules no longer take: it goes back
		if !slices.Contains(sources, from) {
			failed = append(failed, in.enter(ctx, from))
		}
	}
	for _, from := range sources {
		n, err := in.drain(ctx, from)
		if moved += n; err != nil {
			err = fmt.Errorf("%s: %w", from.key, err)
		}
		failed = append(failed, err)
		if err != nil && !errors.As(err, new(*refusal)) {
			break // Redis or the broker is away
		}
	}
	return moved, errors.Join(failed...)
}

// sources returns the places from which jobs come in.
func (in *inward) sources(ctx context.Context) ([]source, error) {
	queues, err := in.store.queues(ctx)
	queues = append(queues, in.rules.Queues...) // a producer may push without adding its queue to that set
	slices.Sort(queues)
	sources := slices.Clone(sets)
	for _, queue := range slices.Compact(queues) {
		if in.rules.takesList(queue) {
			sources = append(sources, listOf(queue))
		}
	}
	return sources, err
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
		taken, err := in.store.take(ctx, from, wanted, skip+10*batchSize)
		if err != nil {
			return moved, err
		}
		if moved += len(taken); len(taken) == 0 { // Sidekiq's workers have them
			skip += int64(len(wanted))
		}
	}
	return moved, in.enter(ctx, from)
}

// wanted returns the items that can come in, and counts the others.
func (in *inward) wanted(from source, items []item) (wanted []item) {
	for _, i := range items {
		_, err := in.rules.fromSidekiq(from, []byte(i.job), i.at())
		if in.refused[i.job] {
			err = refused
		}
		if err == nil {
			wanted = append(wanted, i)
		} else {
			in.left[err.Error()]++
		}
	}
	return wanted
}

// enter publishes what is in the private list of a source, and removes what the broker has
// confirmed. After an error the rest is there when enter is called again.
func (in *inward) enter(ctx context.Context, from source) error {
	for {
		n := batchSize
		if in.single[from.key] > 0 {
			n = 1
			in.single[from.key]--
		}
		items, err := in.store.waiting(ctx, from, int64(n))
		if err != nil || len(items) == 0 {
			return err
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
		m, err := in.rules.fromSidekiq(from, []byte(i.job), i.at())
		if err != nil { // the rules have changed since it was taken
			if err := in.store.putBack(ctx, from, i); err != nil {
				return err
			}
			continue
		}
		sent, messages = append(sent, i), append(messages, m)
	}
	if len(messages) == 0 {
		return nil
	}
	if in.link == nil {
		l, err := openLink(ctx, in.cfg)
		if err != nil {
			return err
		}
		in.link = l
	}
	fates, err := in.link.publish(messages)
	var done []item
	for n, i := range sent {
		switch fates[n] {
		case confirmed:
			done = append(done, i)
		case impossible:
			if err := in.refuse(ctx, from, i); err != nil {
				return err
			}
		}
	}
	// A job whose confirm was seen must not be published again, even if ctx has ended meanwhile.
	if err := in.store.settle(context.WithoutCancel(ctx), from, done); err != nil {
		return err
	}
	if err == nil || errors.As(err, new(*refusal)) {
		return err
	}
	return in.lost(ctx, from, sent, err)
}

// lost closes the connection after an error. If the broker has closed the channel over one of the
// messages, they are published one by one.
func (in *inward) lost(ctx context.Context, from source, sent []item, err error) error {
	in.link.close()
	in.link = nil
	var answer *amqp.Error
	switch {
	case !errors.As(err, &answer) || answer.Code != amqp.PreconditionFailed: // a message that is too large, for example
	case len(sent) > 1:
		in.single[from.key] = len(sent)
	default:
		return errors.Join(err, in.refuse(ctx, from, sent[0]))
	}
	return err
}

// refuse puts a job back for good.
func (in *inward) refuse(ctx context.Context, from source, i item) error {
	in.refused[i.job] = true
	in.log.Error("the broker refuses a job: it stays in Redis", "place", from.key, "bytes", len(i.job))
	return in.store.putBack(ctx, from, i)
}

// sayLeft logs which jobs stay in Redis: a new reason at once, and all of them once a minute.
func (in *inward) sayLeft() {
	all := time.Since(in.saidAt) >= sayEvery
	for _, why := range slices.Sorted(maps.Keys(in.left)) {
		if all || !in.said[why] {
			in.log.Warn("jobs stay in Redis", "reason", why, "jobs", in.left[why])
			in.said[why] = true
			in.saidAt = time.Now()
		}
	}
}

package sidekiq

import (
	"cmp"
	"context"
	"slices"

	"github.com/tidwall/gjson"
)

// Group is a number of jobs of one class in one place of Redis.
type Group struct {
	Place string `json:"place"` // queue, schedule, retry or dead
	Queue string `json:"queue"`
	Class string `json:"class"`
	To    string `json:"to"`     // the queue into which they would come; empty: they would stay
	Stays string `json:"reason"` // why they would stay
	Jobs  int    `json:"jobs"`
}

// Survey counts the jobs in Redis, and says what the bridge would do with each. It changes nothing.
func (b *Bridge) Survey(ctx context.Context) ([]Group, error) {
	if err := b.check(ctx); err != nil {
		return nil, err
	}
	queues, err := b.store.queues(ctx)
	if err != nil {
		return nil, err
	}
	sources, err := b.store.taken(ctx) // also what a bridge has not entered yet
	if err != nil {
		return nil, err
	}
	sources = append(sources, sets...)
	for _, queue := range append(queues, b.cfg.Rules.Queues...) {
		sources = append(sources, listOf(queue))
	}
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.key, b.key) })
	counts := map[Group]int{}
	for _, from := range slices.Compact(sources) {
		if err := b.count(ctx, from, counts); err != nil {
			return nil, err
		}
	}
	groups := make([]Group, 0, len(counts))
	for g, n := range counts {
		g.Jobs = n
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Stays, b.Stays))
	})
	return groups, nil
}

// count counts the jobs of a source, and those that a bridge has taken from it.
func (b *Bridge) count(ctx context.Context, from source, counts map[Group]int) error {
	items, err := b.store.waiting(ctx, from, batchSize)
	for skip := int64(0); err == nil && (skip == 0 || len(items) > 0); skip += batchSize {
		for _, i := range items {
			counts[b.cfg.Rules.groupOf(from, i)]++
		}
		items, err = b.store.peek(ctx, from, skip, batchSize)
	}
	return err
}

func (r Rules) groupOf(from source, i item) Group {
	job := []byte(i.job)
	g := Group{Place: from.place.String(), Class: gjson.GetBytes(job, "class").Str}
	g.Queue = from.queueOf(gjson.GetBytes(job, "queue").Str)
	if wrapped := gjson.GetBytes(job, "wrapped").Str; wrapped != "" {
		g.Class = wrapped
	}
	_, err := r.fromSidekiq(from, job, i.at())
	switch {
	case from.place == list && r.out(g.Queue):
		g.Stays = "Sidekiq's workers run it"
	case err != nil:
		g.Stays = err.Error()
	default:
		g.To, _ = r.queueOf(g.Class, g.Queue)
	}
	return g
}

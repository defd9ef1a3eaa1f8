//go:build semaphore

package main

import (
	"context"
	"fmt"

	"github.com/hibiken/asynq/x/rate"
)

// acquirer has a semaphore for each key. asynq/x, which has semaphores, needs an older Asynq: see
// semaphore.mod.
func (p *peer) acquirer() func(context.Context, int) (release func() error, err error) {
	all := make([]*rate.Semaphore, p.Keys)
	for key := range all {
		all[key] = rate.NewSemaphore(p.redis, fmt.Sprint(p.Row, "-", key), p.Limit)
	}
	return func(ctx context.Context, key int) (func() error, error) {
		ok, err := all[key].Acquire(ctx)
		if err == nil && !ok {
			err = errBusy
		}
		return func() error { return all[key].Release(ctx) }, err
	}
}

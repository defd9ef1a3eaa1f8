package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/crew"
)

// limitsFlow has jobs of a few keys run under a limit for each key.
type limitsFlow struct {
	beside
	source crew.Source
	log    *crew.Work
	held   string // the slots that are held in the end
}

// perKey is how many jobs of a key may run at once.
const perKey = 3

func newLimits(w *world) flow { return &limitsFlow{beside: beside{world: w}} }

func (f *limitsFlow) begin(ctx context.Context) error {
	if err := f.setUp(crew.Limited()); err != nil {
		return err
	}
	if _, err := f.ask(ctx, http.MethodPut, "/api/limits/each", fmt.Sprintf(`{"per":["key"],"concurrency":%d}`, perKey)); err != nil {
		return err
	}
	const keys, every = 3, 80 * time.Millisecond
	f.source = crew.Source{URLs: f.urls(), Every: every, Job: func(n int) (string, []byte) {
		jid := fmt.Sprintf("limited-%05d", n)
		return jid, fmt.Appendf(nil, `{"jid":%q,"class":"Limited","args":[],"queue":%q,"gate":{"key":"key-%d"}}`, jid, homes[n/keys%len(homes)], n%keys)
	}}
	f.begins(ctx, f.publish, f.killWorkers)
	return nil
}

// endless is more jobs than a row takes.
const endless = 1_000_000

func (f *limitsFlow) publish(ctx context.Context) { f.source.Run(ctx, endless) }

func (f *limitsFlow) end(ctx context.Context) error {
	f.stop()
	if err := f.comes(ctx, func() (int, error) {
		log, err := crew.ReadWork(f.path)
		if err != nil {
			return 0, err
		}
		return len(log.Missing(f.source.Sure())), nil
	}); err != nil {
		return err
	}
	return f.comes(ctx, func() (int, error) {
		held, err := f.ask(ctx, http.MethodGet, "/api/slots", "")
		f.held = string(held)
		return len(gjson.ParseBytes(held).Array()), err
	})
}

func (f *limitsFlow) bound(must func(bool, string, ...any)) (err error) {
	if f.log, err = crew.ReadWork(f.path); err != nil {
		return err
	}
	must(f.log.Most == perKey, "%d jobs of one key ran at once, and the limit is %d", f.log.Most, perKey)
	boundWork(f.log, must)
	missing := f.log.Missing(f.source.Sure())
	must(len(missing) == 0, "%d limited jobs are not done: %.20q", len(missing), missing)
	must(gjson.Parse(f.held).Get("#").Int() == 0, "slots are held in the end: %s", f.held)
	return nil
}

// boundWork checks that no job ran twice, but for those of workers that had died.
func boundWork(log *crew.Work, must func(bool, string, ...any)) {
	must(len(log.Again) == 0, "%d jobs began again although their end was confirmed: %.20q", len(log.Again), log.Again)
	must(len(log.Twice) == 0, "%d jobs began again that the broker had not given out again: %.20q", len(log.Twice), log.Twice)
}

func (f *limitsFlow) String() string {
	if f.log == nil {
		return ""
	}
	return fmt.Sprintf("%d limited jobs, at most %d of a key at once, %d workers killed, %d begun again", len(f.source.Sure()), f.log.Most, f.killed(), f.log.Repeats)
}

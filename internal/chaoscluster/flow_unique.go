package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/crew"
)

// uniqueFlow has producers race with unique jobs of a few keys.
type uniqueFlow struct {
	beside
	source  crew.Source
	log     *crew.Work
	verdict crew.Verdict
	taken   string // the keys that are taken in the end
}

func newUnique(w *world) flow { return &uniqueFlow{beside: beside{world: w}} }

// racers is how many producers publish unique jobs.
const racers = 4

func (f *uniqueFlow) begin(ctx context.Context) error {
	if err := f.setUp(crew.Limited()); err != nil {
		return err
	}
	const keys, every = 40, 200 * time.Millisecond
	f.source = crew.Source{URLs: f.urls(), Every: every, Job: func(n int) (string, []byte) {
		jid, key := fmt.Sprintf("unique-%05d", n), fmt.Sprintf("key-%d", (n/racers*7+n%racers)%keys)
		return jid, fmt.Appendf(nil, `{"jid":%q,"class":"Unique","args":[],"queue":%q,"gate":{"key":%[3]q,"unique":{"key":%[3]q}}}`, jid, homes[n%len(homes)], key)
	}}
	var all []func(context.Context)
	for range racers {
		all = append(all, func(ctx context.Context) { f.source.Run(ctx, endless) })
	}
	f.begins(ctx, append(all, f.killWorkers)...)
	return nil
}

func (f *uniqueFlow) end(ctx context.Context) error {
	f.stop()
	if err := f.comes(ctx, func() (int, error) {
		taken, err := f.ask(ctx, http.MethodGet, "/api/unique-keys", "")
		f.taken = string(taken)
		return len(gjson.ParseBytes(taken).Array()), err
	}); err != nil {
		return err
	}
	log, err := crew.ReadWork(f.path)
	if err != nil {
		return err
	}
	f.verdict, err = f.source.Judge(log, func(jid string) (string, error) {
		timeline, err := f.ask(ctx, http.MethodGet, "/api/jobs/"+jid, "")
		return gjson.ParseBytes(timeline).Get(`events.#(what=="duplicate").other`).String(), err
	})
	return err
}

func (f *uniqueFlow) bound(must func(bool, string, ...any)) (err error) {
	if f.log, err = crew.ReadWork(f.path); err != nil {
		return err
	}
	both := f.log.Overlaps()
	must(len(both) == 0, "%d pairs of jobs of one key were unfinished at once: %.20q", len(both), both)
	boundWork(f.log, must)
	must(len(f.verdict.Lost) == 0, "%d unique jobs are lost: %.20q", len(f.verdict.Lost), f.verdict.Lost)
	must(len(f.verdict.Wrong) == 0, "%d answers were wrong: %.20q", len(f.verdict.Wrong), f.verdict.Wrong)
	must(f.verdict.Duplicates > 0, "no job was a duplicate")
	must(gjson.Parse(f.taken).Get("#").Int() == 0, "keys are taken in the end: %s", f.taken)
	return nil
}

func (f *uniqueFlow) String() string {
	if f.log == nil {
		return ""
	}
	sure := len(f.source.Sure())
	return fmt.Sprintf("%d unique jobs, %d of them duplicates, %d without an answer, %d workers killed, %d begun again",
		sure, f.verdict.Duplicates, sure-len(f.source.Answers()), f.killed(), f.log.Repeats)
}

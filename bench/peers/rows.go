package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/bench/peers/work"
)

// measured is one row of one peer.
type measured struct {
	*bench
	peer   *peer
	server server
	work   work.Work

	workers   []*process
	scheduler *process
}

// doneWithin is how long the jobs of a row may take.
const doneWithin = 3 * time.Minute

// row measures a row of a peer.
func (b *bench) row(ctx context.Context, p *peer, s server, w work.Work) (err error) {
	w.Log = filepath.Join(b.dir, w.Row+".log")
	if err := os.WriteFile(w.Log, nil, 0o666); err != nil {
		return err
	}
	if err := s.fresh(ctx, &w); err != nil {
		return err
	}
	m := &measured{bench: b, peer: p, server: s, work: w}
	defer func() { err = errors.Join(err, m.end()) }()
	if _, err := m.run(ctx, "define"); err != nil {
		return err
	}
	measure := map[string]func(context.Context) error{
		work.Keyed: m.keyed, work.Gaps: m.keyed, work.Rate: m.rate, work.Unique: m.unique, work.Periodic: m.periodic, work.Killed: m.killed,
	}
	return measure[w.Row](ctx)
}

func (m *measured) run(ctx context.Context, role string) ([]byte, error) {
	return m.peer.command(m.work, role).run(ctx, m.work)
}

// startWorkers starts all workers.
func (m *measured) startWorkers(ctx context.Context) error {
	for range cmp.Or(m.peer.workers, 2) {
		p, err := m.peer.command(m.work, "worker").start(ctx, m.work)
		if err != nil {
			return err
		}
		m.workers = append(m.workers, p)
	}
	return nil
}

// end kills all processes that still run.
func (m *measured) end() error {
	var all error
	for _, p := range append(m.workers, m.scheduler) {
		if p != nil {
			all = errors.Join(all, p.kill())
		}
	}
	m.workers, m.scheduler = nil, nil
	return all
}

// done waits until so many jobs have ended, each once.
func (m *measured) done(ctx context.Context, n int) ([]event, error) {
	var all []event
	err := until(ctx, doneWithin, fmt.Sprintf("%d jobs have ended", n), func() (bool, error) {
		if lines, err := endLines(m.work.Log); err != nil || lines < n {
			return false, err
		}
		var err error
		all, err = events(m.work.Log)
		return err == nil && ended(all) >= n, err
	})
	if err != nil {
		err = fmt.Errorf("%w, and not only %d", err, ended(all))
	}
	return all, err
}

// endLines returns how many lines say that a job has ended. It costs next to nothing, unlike
// events.
func endLines(file string) (int, error) {
	content, err := os.ReadFile(file)
	return bytes.Count(content, []byte("\ne ")), err
}

// ended returns how many jobs have ended.
func ended(all []event) int {
	ids := map[int]bool{}
	for _, e := range all {
		if !e.begins {
			ids[e.id] = true
		}
	}
	return len(ids)
}

// produceAndRun enqueues all jobs, then starts workers, and waits until all have ended.
func (m *measured) produceAndRun(ctx context.Context) ([]event, error) {
	if _, err := m.run(ctx, "produce"); err != nil {
		return nil, err
	}
	if err := m.startWorkers(ctx); err != nil {
		return nil, err
	}
	return m.done(ctx, m.work.Jobs)
}

// keyed measures jobs of keys that have a limit each.
func (m *measured) keyed(ctx context.Context) error {
	all, err := m.produceAndRun(ctx)
	if err != nil {
		return err
	}
	w, name := m.work, m.peer.name
	c := count(all, w.Limit, nil)
	ideal := float64(w.Keys*w.Limit) * 1000 / float64(w.SleepMS)
	what := fmt.Sprintf("%d jobs of %d ms, %d keys, %d at once each", w.Jobs, w.SleepMS, w.Keys, w.Limit)
	m.table.add(name, what+": ended", perSecond, float64(w.Jobs)/(c.last-c.first).Seconds())
	if w.Row == work.Gaps {
		m.table.add(name, what+": share of what the limit allows", percent, float64(w.Jobs)/(c.last-c.first).Seconds()/ideal)
	}
	m.table.addSpans(name, what+": slot free to next start", c.gaps)
	m.table.addWorst(name, what+": most at once", whole, float64(c.most))
	m.table.addWorst(name, what+": ran twice", whole, float64(twice(c.ends)))
	return nil
}

// twice returns how many jobs ended more than once.
func twice(ends map[int]int) (n int) {
	for _, times := range ends {
		if times > 1 {
			n++
		}
	}
	return n
}

// rateSeconds is for how many whole seconds jobs are counted under a rate.
const rateSeconds = 5

// rate measures how many jobs begin in each second.
func (m *measured) rate(ctx context.Context) error {
	all, err := m.produceAndRun(ctx)
	if err != nil {
		return err
	}
	counts, most := perSecondOf(all, rateSeconds)
	what := fmt.Sprintf("a rate of %d/s: jobs begun in ", m.work.Rate)
	m.table.add(m.peer.name, what+"the second with the fewest", whole, float64(slices.Min(counts)))
	m.table.addWorst(m.peer.name, what+"the second with the most", whole, float64(slices.Max(counts)))
	m.table.addWorst(m.peer.name, what+"any 1,000 ms, most", whole, float64(most))
	return nil
}

// unique measures producers of unique jobs. Workers start when all jobs are enqueued.
func (m *measured) unique(ctx context.Context) error {
	output, err := m.run(ctx, "unique")
	if err != nil {
		return err
	}
	var d work.Decided
	if err := json.Unmarshal(output, &d); err != nil {
		return err
	}
	if err := m.startWorkers(ctx); err != nil {
		return err
	}
	keys := m.work.Jobs / 2
	all, err := m.done(ctx, keys)
	if err != nil {
		return err
	}
	c := count(all, keys, nil)
	what := fmt.Sprintf("%d unique jobs, half of them duplicates, %d producers: ", m.work.Jobs, m.work.Producers)
	m.table.add(m.peer.name, what+"decided", perSecond, float64(m.work.Jobs)/d.Seconds)
	m.table.addWorst(m.peer.name, what+"accepted more than once", whole, float64(d.Accepted-keys))
	m.table.addWorst(m.peer.name, what+"duplicates that ran", whole, float64(twice(c.ends)))
	return nil
}

// killed kills one of two workers while both run jobs of keys that are all at their limits.
func (m *measured) killed(ctx context.Context) error {
	if _, err := m.run(ctx, "produce"); err != nil {
		return err
	}
	if err := m.startWorkers(ctx); err != nil {
		return err
	}
	if _, err := m.done(ctx, killAfter); err != nil {
		return err
	}
	death, err := m.killWorker()
	if err != nil {
		return err
	}
	var c *counted
	err = until(ctx, recoveredWithin, "all is as before", func() (bool, error) {
		all, err := events(m.work.Log)
		if err != nil {
			return false, err
		}
		c = count(all, m.work.Limit, death)
		return c.unfilled == 0 && lost(c) == 0, nil
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	m.reportKilled(c)
	return nil
}

// killWorker kills the worker that runs most jobs. Threads of it may write a little longer than the
// kill takes.
func (m *measured) killWorker() (*died, error) {
	all, err := events(m.work.Log)
	if err != nil {
		return nil, err
	}
	now := time.Duration(work.Now())
	busy := func(p *process) int { return len(count(all, m.work.Limit, &died{p.cmd.Process.Pid, now}).running) }
	victim := slices.MaxFunc(m.workers, func(a, b *process) int { return busy(a) - busy(b) })
	m.workers = slices.DeleteFunc(m.workers, func(p *process) bool { return p == victim })
	death := &died{pid: victim.cmd.Process.Pid, at: time.Duration(work.Now())}
	if err := victim.kill(); err != nil {
		return nil, err
	}
	all, err = events(m.work.Log)
	for _, e := range all {
		if e.pid == death.pid {
			death.at = max(death.at, e.at)
		}
	}
	return death, err
}

const (
	killAfter       = 120 // jobs
	recoveredWithin = 3 * time.Minute
)

// lost returns how many jobs of the killed process have not ended since.
func lost(c *counted) (n int) {
	for id := range c.running {
		if c.ends[id] == 0 {
			n++
		}
	}
	return n
}

func (m *measured) reportKilled(c *counted) {
	what, name := "a worker killed: ", m.peer.name
	m.table.add(name, what+"jobs that ran in it", whole, float64(len(c.running)))
	m.table.addWorst(name, what+fmt.Sprintf("of these, not done within %v", recoveredWithin), whole, float64(lost(c)))
	m.table.addWorst(name, what+"jobs done twice", whole, float64(twice(c.ends)))
	m.table.addWorst(name, what+fmt.Sprintf("most at once of a key, limit %d", m.work.Limit), whole, float64(c.most))
	m.table.add(name, what+"its slots in use again after, p50", span, quantile(c.stuck, 0.5).Seconds())
	m.table.addWorst(name, what+"its slots in use again after, the last", span, quantile(c.stuck, 1).Seconds())
	m.table.addWorst(name, what+fmt.Sprintf("its slots still stuck after %v", recoveredWithin), whole, float64(c.unfilled))
}

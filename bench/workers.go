package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// targetWorker is the part of the throughput of its language's bare loop that a library's worker
// must reach.
const targetWorker = 0.7

// languages are the languages with a measured library. The programs are those that
// clients/conformance tests.
var languages = []string{"go", "python", "ruby", "javascript", "java"}

// measureWorkers lets each language's worker empty a queue of jobs that do nothing, with all its
// work for retries, metrics and heartbeats. Then the bare loop of the language does the same, with
// the same AMQP library, the same prefetch and one acknowledgement per job.
func measureWorkers(ctx context.Context, b *bench, v *vhost) (err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	b.rounds++
	return eachLanguage(ctx, b.size.languages, func(lang, dir string) error { return b.measureWorker(ctx, v, lang, dir) })
}

// eachLanguage builds the programs of each language, and calls measure with their directory.
func eachLanguage(ctx context.Context, languages []string, measure func(lang, dir string) error) error {
	for _, lang := range languages {
		dir, found := programs(lang)
		if !found {
			continue
		}
		if text, err := exec.CommandContext(ctx, filepath.Join(dir, "build")).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: build: %w: %s", lang, err, text)
		}
		if err := measure(lang, dir); err != nil {
			return fmt.Errorf("%s: %w", lang, err)
		}
	}
	return nil
}

// programs returns the directory with a language's programs, seen from the repository's root or
// from this package.
func programs(lang string) (string, bool) {
	for _, root := range []string{".", ".."} {
		dir := filepath.Join(root, "clients", lang, "conformance")
		if _, err := os.Stat(filepath.Join(dir, "bare")); err == nil {
			return dir, true
		}
	}
	return "", false
}

func (b *bench) measureWorker(ctx context.Context, v *vhost, lang, dir string) error {
	rate := map[string]float64{}
	for _, program := range b.turns() {
		took, err := b.empty(ctx, v, lang, filepath.Join(dir, program))
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		rate[program] = float64(b.size.jobs) / took.Seconds()
	}
	b.table.add(fmt.Sprintf("%d jobs worked off, %s", b.size.jobs, lang), perSecond, ratioAtLeast(targetWorker), rate["worker"], rate["bare"])
	return nil
}

// turns returns the order of the two. Each goes first in every other round, so that neither always
// gets the broker in the state that the other left.
func (b *bench) turns() []string {
	if b.rounds%2 == 0 {
		return []string{"bare", "worker"}
	}
	return []string{"worker", "bare"}
}

// empty makes a program empty a queue, and measures the time from when it is warm until the last
// job. Before that, the compilers of Node and Java are busy, for longer if there is more code. That
// cost is paid once per process and not per job. In Java it is most of the cost of those jobs.
func (b *bench) empty(ctx context.Context, v *vhost, lang, path string) (took time.Duration, err error) {
	name := "work-" + lang
	p, err := newPublisher(v)
	if err != nil {
		return 0, err
	}
	defer p.close()
	full := wire.QueuePrefix + name
	if _, err := p.ch.QueueDeclare(full, true, false, false, false, amqp.Table{"x-max-priority": wire.MaxPriority}); err != nil {
		return 0, err
	}
	for i := range b.size.warm + b.size.jobs {
		body := fmt.Appendf(nil, `{"jid":"%032x","class":"Noop","args":[],"queue":%q,"retry":25,"enqueued_at":1700000000.5}`, i, name)
		if err := p.publish("", full, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}); err != nil {
			return 0, err
		}
	}
	if err := p.drain(); err != nil {
		return 0, err
	}
	stop, err := b.startProgram(path, v, name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	left := func(n int) func() (bool, error) {
		return func() (bool, error) {
			q, err := p.ch.QueueDeclarePassive(full, true, false, false, false, nil)
			return q.Messages <= n, err
		}
	}
	if err := wait(ctx, time.Minute, "it is warm", left(b.size.jobs)); err != nil {
		return 0, err
	}
	begin := time.Now()
	err = wait(ctx, 10*time.Minute, "the queue is empty", left(0))
	return time.Since(begin), err
}

// startProgram starts a worker or a bare loop.
func (b *bench) startProgram(path string, v *vhost, queue string) (stop func() error, err error) {
	settings, err := json.Marshal(map[string]any{"queues": []string{queue}, "concurrency": jobSlots})
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "MILLRACE_AMQP_URL="+v.amqpURL, "MILLRACE_WORKER="+string(settings), "MILLRACE_EFFECTS="+os.DevNull)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if b.verbose {
		cmd.Stdout, cmd.Stderr = b.stderr, b.stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		return cmd.Wait()
	}, nil
}

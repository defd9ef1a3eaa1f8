package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"time"
)

// pagesPromised is how many pages of a list must arrive within the time that the API promises.
const pagesPromised = 100

// question is a request with a promised response time.
type question struct {
	name   string
	within time.Duration // at p99; zero if nothing is promised
	path   func() string
}

// goal returns the limit for the answer, if there is a promise.
func (q question) goal(seconds float64) target {
	if q.within == 0 {
		return noTarget
	}
	return atMost(seconds)
}

func (m *million) questions() []question {
	pages := min(pagesPromised, m.size.pending/pagesPromised)
	fixed := func(path string) func() string { return func() string { return path } }
	return []question{
		{"a page of 100", 5 * time.Millisecond, func() string {
			return fmt.Sprintf("/api/scheduled-jobs?page_size=100&page=%d", 1+rand.IntN(pages))
		}},
		{"a jid", time.Millisecond, func() string { return "/api/scheduled-jobs/" + m.anyPending() }},
		{"the overview", 2 * time.Millisecond, fixed("/api/overview")},
		// This is how long any answer takes on this machine.
		{"an answer that says nothing", 0, fixed("/healthz")},
	}
}

// slowdown is how many times longer a handler may take while jobs flow and keep the machine busy.
const slowdown = 3

// p99 is the 99th percentile of response times in seconds: as the client sees it, and within the
// handler.
type p99 struct{ answer, handler float64 }

// ask measures answers on an idle system, and while jobs flow.
func (m *million) ask(ctx context.Context, s process) error {
	quiet := map[string]float64{}
	err := m.askAll(ctx, s, func(q question, took p99) {
		m.table.addAlone(m.name(q.name+", p99"), millis, q.goal(q.within.Seconds()), took.answer)
		quiet[q.name] = median(m.table.addAlone(m.name(q.name+", p99 within its handler"), millis, noTarget, took.handler))
	})
	if err != nil {
		return err
	}
	stop, err := m.flow(ctx)
	if err != nil {
		return err
	}
	flowing := fmt.Sprintf(" while %d jobs a second flow", m.size.asked.flow)
	err = m.askAll(ctx, s, func(q question, took p99) {
		goal := q.goal(max(q.within.Seconds(), slowdown*quiet[q.name]))
		m.table.addAlone(m.name(q.name+", p99"+flowing), millis, noTarget, took.answer)
		m.table.addAlone(m.name(q.name+", p99 within its handler"+flowing), millis, goal, took.handler)
	})
	return errors.Join(err, stop())
}

// askAll sends the requests for each question, and passes the p99 of their answers to report.
func (m *million) askAll(ctx context.Context, s process, report func(q question, took p99)) error {
	for _, q := range m.questions() {
		answers, handlers, err := m.answers(ctx, s.URL, q)
		if err != nil {
			return err
		}
		report(q, p99{quantile(answers, 0.99).Seconds(), quantile(handlers, 0.99).Seconds()})
	}
	return nil
}

// answers makes another process send the requests one after another, on one connection.
func (m *million) answers(ctx context.Context, url string, q question) (answers, handlers []time.Duration, err error) {
	var pages, out, complaint bytes.Buffer
	for range m.size.asked.requests {
		fmt.Fprintln(&pages, url+q.path())
	}
	cmd := exec.CommandContext(ctx, m.asker)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &pages, &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, nil, fmt.Errorf("%w: %s", err, &complaint)
	}
	for line := range strings.Lines(out.String()) {
		var answer, handler time.Duration
		if _, err := fmt.Sscan(line, (*int64)(&answer), (*int64)(&handler)); err != nil {
			return nil, nil, err
		}
		answers, handlers = append(answers, answer), append(handlers, handler)
	}
	return answers, handlers, nil
}

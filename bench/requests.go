package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// pagesPromised is how many pages of a list come within the time that the API promises.
const pagesPromised = 100

// question is a request that the API promises to answer in time.
type question struct {
	name   string
	within time.Duration // at p99; zero where nothing is promised
	path   func() string
}

// goal is the one to answer within a limit, where anything is promised.
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
		{"an answer that says nothing", 0, fixed("/healthz")}, // what any answer takes on this machine
	}
}

// slowdown is how much more time an answer may take while jobs flow, on a machine that these jobs keep busy.
const slowdown = 3

// ask measures answers while nothing happens, and while jobs flow.
func (m *million) ask(ctx context.Context, s process) error {
	quiet := map[string]float64{}
	err := m.askAll(ctx, s, func(q question, p99 float64) {
		quiet[q.name] = median(m.table.addAlone(m.name(q.name+", p99"), millis, q.goal(q.within.Seconds()), p99))
	})
	if err != nil {
		return err
	}
	stop, err := m.flow(ctx)
	if err != nil {
		return err
	}
	err = m.askAll(ctx, s, func(q question, p99 float64) {
		goal := q.goal(max(q.within.Seconds(), slowdown*quiet[q.name]))
		m.table.addAlone(m.name(fmt.Sprintf("%s, p99 while %d jobs a second flow", q.name, m.size.flow)), millis, goal, p99)
	})
	return errors.Join(err, stop())
}

// askAll asks each question, and tells the p99 of its answers, in seconds.
func (m *million) askAll(ctx context.Context, s process, tell func(q question, p99 float64)) error {
	for _, q := range m.questions() {
		took, err := m.answers(ctx, s.URL, q)
		if err != nil {
			return err
		}
		tell(q, quantile(took, 0.99).Seconds())
	}
	return nil
}

// answers has another process ask again and again, on one connection.
func (m *million) answers(ctx context.Context, url string, q question) ([]time.Duration, error) {
	var pages, out, complaint bytes.Buffer
	for range m.size.requests {
		fmt.Fprintln(&pages, url+q.path())
	}
	cmd := exec.CommandContext(ctx, m.asker)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &pages, &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, &complaint)
	}
	took := make([]time.Duration, 0, m.size.requests)
	for line := range strings.Lines(out.String()) {
		ns, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Duration(ns))
	}
	return took, nil
}

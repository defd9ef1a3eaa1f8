package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// scenario is a test of a client.
type scenario struct {
	name, what string
	run        func(*trial)
	crowd      bool // runs with all languages together
	restarts   bool // restarts its broker, so it has its own
	idle       bool // waits nearly all of its time
	rabbitmq   bool // is about something that LavinMQ lacks
}

// client is a library under test.
type client struct {
	name string
	dir  string   // of its programs
	env  []string // of its programs

	source string // the wrong copy of its sources that is to be compiled, or empty
}

// trial is one scenario with one language.
type trial struct {
	*suite
	client
	*test
	*room
	*streams
	clients   []client // several for a crowd
	watermark string   // of the broker's memory before an alarm; empty without an alarm
	broker    *localbroker.Broker
	said      said
}

// test records failures, waits and cleans up. It is a require.TestingT.
type test struct {
	ctx      context.Context
	mu       sync.Mutex
	failure  strings.Builder
	failed   bool
	cleanups []func()
}

// Limits of how long a trial may take.
const (
	trialLimit     = 6 * time.Minute
	fullTrialLimit = 20 * time.Minute
)

// try runs a scenario. It always cleans up.
func (s *suite) try(ctx context.Context, sc scenario, clients []client) result {
	limit := trialLimit
	if s.full {
		limit = fullTrialLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := &trial{suite: s, client: clients[0], clients: clients, broker: s.broker, test: &test{ctx: ctx}}
	start := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.cleanUp()
		if t.source != "" {
			require.NoError(t, s.build(ctx, t.dir+"/build-copy", t.source))
		}
		if sc.restarts {
			t.ownBroker()
		}
		t.enter()
		sc.run(t)
	}()
	<-done
	return result{failure: t.failure.String(), said: t.said.String(), took: time.Since(start)}
}

func (t *test) cleanUp() {
	if p := recover(); p != nil {
		t.Errorf("the runner panicked: %v", p)
	}
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

// ownBroker starts a broker for this trial alone, because the trial would disturb others.
func (t *trial) ownBroker() {
	dir, err := os.MkdirTemp(t.tmp, "broker-")
	require.NoError(t, err)
	broker, stop, err := startBroker(t.ctx, dir)
	require.NoError(t, err)
	t.broker = broker
	t.cleanup(stop)
}

// Errorf records a failure.
func (t *test) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = true
	fmt.Fprintf(&t.failure, format+"\n", args...)
}

// FailNow ends the trial.
func (t *test) FailNow() { runtime.Goexit() }

// Helper is part of the interface that the assertions need.
func (t *test) Helper() {}

func (t *test) fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	t.FailNow()
}

func (t *test) cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// patience allows for a slow machine.
const patience = 60 * time.Second

// eventually waits until a condition holds.
func (t *test) eventually(holds func() bool, format string, args ...any) {
	t.within(patience, holds, format, args...)
}

func (t *test) within(limit time.Duration, holds func() bool, format string, args ...any) {
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.fatalf("not within %v: %s", limit, fmt.Sprintf(format, args...))
		}
		t.pause(50 * time.Millisecond)
	}
}

// later is a text that is built only if it is needed.
type later func() string

func (l later) String() string { return l() }

// pause waits for a time in which nothing may happen.
func (t *test) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
		t.fatalf("the trial's time is over")
	}
}

package gotest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/millrace-jobs/millrace/clients/go"
)

func TestRegistrationsAfterRun(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL()})
	started := make(chan struct{})
	w.On(Hooks{Startup: func() { close(started) }})
	w.start(t)
	<-started
	for method, register := range map[string]func(){
		"Handle": func() { w.Handle("Late", w.says(nil), nil) },
		"Use":    func() { w.Use(func(next Handler) Handler { return next }) },
		"On":     func() { w.On(Hooks{}) },
	} {
		require.PanicsWithValue(t, "millrace: "+method+" was called after Run: register handlers, middleware and hooks first", register)
	}
	require.ErrorContains(t, w.Run(context.Background()), "a worker runs once")
}

// TestHooksAreAdded calls On several times. The hooks of each call are called, in order, also after
// one that panics.
func TestHooksAreAdded(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL()})
	for _, name := range []string{"first", "second"} {
		w.On(Hooks{
			Startup:  func() { w.said.add(name + " startup") },
			Quiet:    func() { w.said.add(name + " quiet") },
			Shutdown: func() { w.said.add(name + " shutdown") },
			Failure:  func(*RawJob, error) { w.said.add(name + " failure"); panic("a hook") },
			Death:    func(*RawJob, error) { w.said.add(name + " death") },
		})
	}
	w.On(Hooks{})
	w.Handle("Fail", w.says(func(context.Context, string) error { return errors.New("it broke") }), nil)
	enqueue(t, v, "Fail", "ran", &EnqueueOptions{MaxAttempts: 1})
	w.start(t)
	w.said.has(t, "second death")
	w.stop(t)
	require.Equal(t, []string{
		"first startup", "second startup", "ran", "first failure", "second failure", "first death", "second death",
		"first quiet", "second quiet", "first shutdown", "second shutdown",
	}, w.said.all())
}

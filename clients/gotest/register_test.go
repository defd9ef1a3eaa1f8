package gotest

import (
	"context"
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

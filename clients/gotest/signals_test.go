//go:build unix

package gotest

import (
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// The signals of job workers: one makes the worker quiet, another stops it.
func TestSignals(t *testing.T) {
	v := vhost(t)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL()})
	w.Handle("Well", w.says(nil), nil)
	go func() { w.end <- w.RunWithSignals(context.Background()) }()
	t.Cleanup(func() { w.stop(t) })
	brokertest.Eventually(t, func() bool { return consumers(t, v, "default") == 1 }, "it consumes")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTSTP))
	brokertest.Eventually(t, func() bool { return consumers(t, v, "default") == 0 }, "it is quiet")
	require.Empty(t, w.end, "it runs")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	require.NoError(t, <-w.end)
	w.end <- nil
}

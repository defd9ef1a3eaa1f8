package localbroker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The data of a LavinMQ survives a crash and a stop, if a LavinMQ is named.
func TestLavinMQ(t *testing.T) {
	const name = "MILLRACE_TEST_LAVINMQ"
	program := os.Getenv(name)
	if program == "" {
		t.Skip(name + " names no program")
	}
	dir := t.TempDir()
	b := start(t, Config{Dir: dir, LavinMQ: program})
	require.False(t, b.HasErlang())
	require.Empty(t, b.StreamURL())
	put(t, b, "crash", "one")
	put(t, b, "stop", "two")
	stream(t, b, "stream")
	listening := listeners(t, b.Pid())
	require.Len(t, listening, 3, "AMQP, management, clustering: %v", listening)
	for _, addr := range listening {
		require.True(t, strings.HasPrefix(addr, "127.0.0.1:"), addr)
	}

	first := b.Pid()
	require.NoError(t, b.Kill())
	requireGone(t, first)
	require.NoError(t, b.Restart(t.Context()))
	requireGet(t, b, "crash", "one")
	requireReadable(t, b, "stream")
	require.ErrorContains(t, b.StopApp(t.Context()), "only a RabbitMQ")

	require.NoError(t, b.Stop(t.Context()))
	moved := start(t, Config{Dir: dir, LavinMQ: program})
	requireGet(t, moved, "stop", "two")
	requireReadable(t, moved, "stream")
}

// Without a LavinMQ, the error messages and the configuration can be tested.
func TestNoLavinMQ(t *testing.T) {
	_, err := Start(t.Context(), Config{Dir: t.TempDir(), LavinMQ: filepath.Join(t.TempDir(), "missing")})
	require.ErrorContains(t, err, "looking for LavinMQ")

	dir := t.TempDir()
	program := filepath.Join(dir, "lavinmq")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncat ${1#--config=}\n"), 0o700))
	_, err = Start(t.Context(), Config{Dir: filepath.Join(dir, "node"), LavinMQ: program})
	require.ErrorIs(t, err, errExited)
	require.ErrorContains(t, err, "port = -1", "it got its port, and the error has its output")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "lavinmq.ini"), 0o700))
	require.ErrorContains(t, writeLavinMQ(dir, ports{}, seat{}), "configuring the node")
}

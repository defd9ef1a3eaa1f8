package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBoundsOfDeadJobs(t *testing.T) {
	for age, want := range map[string]time.Duration{"": 0, "12h": 12 * time.Hour, "30d": 30 * 24 * time.Hour} {
		s := sidecarSettings{DeadAge: age}
		require.NoError(t, s.checkDead())
		require.Equal(t, want, s.deadAge())
	}
	require.ErrorContains(t, (&sidecarSettings{DeadAge: "soon"}).checkDead(), "--dead-age")
	require.ErrorContains(t, (&sidecarSettings{DeadAge: "0s"}).checkDead(), "--dead-age")
	require.ErrorContains(t, (&sidecarSettings{DeadMax: -1}).checkDead(), "--dead-max")
}

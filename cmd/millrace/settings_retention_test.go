package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/metrics"
)

func TestBoundsOfDeadJobs(t *testing.T) {
	for age, want := range map[string]time.Duration{"": 0, "12h": 12 * time.Hour, "30d": 30 * 24 * time.Hour} {
		s := deadSettings{DeadAge: age}
		require.NoError(t, s.checkDead())
		require.Equal(t, want, s.deadAge())
	}
	require.ErrorContains(t, (&deadSettings{DeadAge: "soon"}).checkDead(), "--dead-age")
	require.ErrorContains(t, (&deadSettings{DeadAge: "0s"}).checkDead(), "--dead-age")
	require.ErrorContains(t, (&deadSettings{DeadMax: -1}).checkDead(), "--dead-max")
}
func TestBoundsOfTimelines(t *testing.T) {
	for given, want := range map[string]metrics.RunBounds{
		"": {}, "30d": {Age: 30 * 24 * time.Hour}, "2GB": {Bytes: 2e9, Runs: 2e9 / smallestRun},
		"12h, 64MiB": {Age: 12 * time.Hour, Bytes: 64 << 20, Runs: 64 << 20 / smallestRun}, "1GiB,72h": {Age: 72 * time.Hour, Bytes: 1 << 30, Runs: 1 << 30 / smallestRun},
	} {
		s := timelineSettings{TimelineRetention: given}
		got, err := s.timelines()
		require.NoError(t, err, given)
		require.Equal(t, want, got, given)
	}
	for given, want := range map[string]time.Duration{"": 72 * time.Hour, "2GB": 72 * time.Hour, "30d,2GB": 30 * 24 * time.Hour} {
		require.Equal(t, want, (&timelineSettings{TimelineRetention: given}).timelineAge(), given)
	}
	for _, bad := range []string{"soon", "0h", "0MB", "2TB", "72h,72h", "1GB,2GB", "72h,", "-1h", "9999999GB"} {
		_, err := (&timelineSettings{TimelineRetention: bad}).timelines()
		require.ErrorContains(t, err, "--timeline-retention", bad)
	}
}

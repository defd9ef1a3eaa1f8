package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The lines are those of a sidecar.
const (
	lineAway  = `time=2026-11-28T02:00:00.000Z level=WARN msg="scheduler: degraded: jobs for 1 classic queue wait" subject="node millrace2@localhost" problem="the broker says that it does not run; it has queue.classic2" node=millrace2@localhost`
	lineBack  = `time=2026-11-28T02:00:30.000Z level=INFO msg="scheduler: no longer degraded" subject="node millrace2@localhost" after=30s`
	lineQueue = `time=2026-11-28T02:00:01.000Z level=WARN msg="scheduler: degraded: no list" subject="queue jobs.letters" problem=404 node=millrace2@localhost`
)

func TestLogNamesNode(t *testing.T) {
	for _, c := range []struct {
		lines []string
		away  bool
	}{
		{nil, false},
		{[]string{lineQueue}, false},
		{[]string{strings.ReplaceAll(lineAway, "millrace2", "millrace3")}, false},
		{[]string{lineAway, lineQueue}, true},
		{[]string{lineAway, lineBack}, false},
		{[]string{lineAway, lineBack, lineAway}, true},
		{[]string{lineAway, strings.ReplaceAll(lineBack, "millrace2", "millrace3")}, true},
	} {
		away, err := saysAway(strings.NewReader(strings.Join(c.lines, "\n")), "millrace2@localhost")
		require.NoError(t, err)
		require.Equal(t, c.away, away, "%q", c.lines)
	}
}

// Only what a log says since the fault counts.
func TestLogIsReadFromFault(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "s1.log"))
	require.NoError(t, err)
	defer log.Close()
	w := &world{sidecars: sidecars{slots: []*slot{{log: log}}}}
	_, err = log.WriteString(lineAway + "\n")
	require.NoError(t, err)
	f := w.mark()
	away := func() bool { return w.slots[0].names(theLog, f.logs[0], "millrace2@localhost") }
	require.False(t, away(), "it says so of an earlier fault")
	_, err = log.WriteString(lineAway + "\n")
	require.NoError(t, err)
	require.True(t, away())
	_, err = log.WriteString(lineBack + "\n")
	require.NoError(t, err)
	require.False(t, away())
}

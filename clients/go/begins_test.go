package millrace

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// Old records are forgotten. Otherwise a worker that runs for years would remember every process.
// Live processes and recent records are kept.
func TestBeginsAreForgotten(t *testing.T) {
	b := newBegins()
	note := func(at time.Time, r begin) {
		r.At = wire.Seconds(at)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		_, is := b.apply(text)
		require.True(t, is)
	}
	now := time.Now()
	old := now.Add(-memory - time.Hour)
	for _, at := range []time.Time{old, now} {
		when := map[bool]string{true: "old", false: "new"}[at.Equal(old)]
		for _, process := range []string{"lives", "closed", "died"} {
			note(at, begin{Type: typeOpened, Process: when + " " + process, Queues: []string{"q"}})
		}
		note(at, begin{Type: typeClosed, Process: when + " closed"})
		note(at, begin{Type: typeDied, Process: when + " died"})
		note(at, begin{Type: typeBegun, Process: when + " died", JID: when})
	}
	note(now, begin{Type: typeClosed, Process: "unknown"})
	_, is := b.apply([]byte("garbage"))
	require.False(t, is)
	for b.records < 1000 {
		note(now, begin{Type: typeEnded, Process: "new lives", JID: fmt.Sprint(b.records)})
	}
	var left []string
	for id := range b.processes {
		left = append(left, id)
	}
	require.ElementsMatch(t, []string{"old lives", "new lives", "new closed", "new died"}, left)
	require.Len(t, b.suspects, 1)
	require.Equal(t, 1, b.deaths(key{jid: "new"}, "me", nil))
	require.Zero(t, b.deaths(key{jid: "old"}, "me", nil))
}

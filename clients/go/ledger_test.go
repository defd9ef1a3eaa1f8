package millrace

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var endedJob = key{"the jid", "the body"}

// connect returns the ledger of a new connection, and the records that reach the broker on it.
func connect(t *testing.T, w *Worker) (*ledger, chan begin) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &session{w: w, ctx: ctx, cancel: cancel}
	written := make(chan begin, 10)
	l := newLedger(s)
	l.setUsable(true)
	l.send = func(ctx context.Context, m message) error {
		if ctx.Err() != nil {
			return errLost
		}
		var r begin
		require.NoError(t, json.Unmarshal(m.Body, &r))
		written <- r
		return nil
	}
	s.start(l.catchUp)
	t.Cleanup(func() {
		cancel()
		s.parts.Wait()
	})
	return l, written
}

func (l *ledger) setUsable(usable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usable = usable
}

func requireEnded(t *testing.T, written chan begin) {
	select {
	case r := <-written:
		require.Equal(t, typeEnded, r.Type)
		require.Equal(t, endedJob, key{r.JID, r.Body})
	case <-time.After(10 * time.Second):
		require.Fail(t, "no record was written")
	}
}

// A job ends while its connection is up: its end is written on that connection, once.
func TestLedgerWritesEndOfJob(t *testing.T) {
	w := NewWorker(WorkerConfig{})
	l, written := connect(t, w)
	l.ended(endedJob)
	requireEnded(t, written)
	require.Empty(t, w.unended)
}

// A job ends after its connection was lost: its end is written on the next connection.
func TestLedgerWritesEndOnNextConnection(t *testing.T) {
	for name, lose := range map[string]func(*ledger){
		"its reader has ended": func(l *ledger) { l.setUsable(false) },
		"it cannot publish":    func(l *ledger) { l.s.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorker(WorkerConfig{})
			lost, dropped := connect(t, w)
			lose(lost)
			lost.s.cancel()
			lost.s.parts.Wait()
			lost.ended(endedJob)
			require.Empty(t, dropped)
			_, written := connect(t, w)
			requireEnded(t, written)
		})
	}
}

// A job outlives its connection and ends when the worker is connected again: the current connection
// writes its end immediately.
func TestLedgerWritesEndOfJobFromLostConnection(t *testing.T) {
	w := NewWorker(WorkerConfig{})
	lost, _ := connect(t, w)
	lost.s.cancel()
	lost.s.parts.Wait()
	_, written := connect(t, w)
	lost.ended(endedJob)
	requireEnded(t, written)
}

// Without the stream, a worker keeps a limited number of ends.
func TestLedgerLimitsUnwrittenEnds(t *testing.T) {
	w := NewWorker(WorkerConfig{})
	l := newLedger(&session{w: w})
	for range unendedKept + 3 {
		l.ended(endedJob)
	}
	require.Len(t, w.unended, unendedKept)
}

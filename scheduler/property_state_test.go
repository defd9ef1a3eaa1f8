package scheduler

import (
	"fmt"
	"maps"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// pauseAsked is what was requested for a queue, and answered.
type pauseAsked struct {
	asked    int   // how often
	answered int   // the newest of those that was
	epoch    int64 // of the leader that answered it
	paused   bool
}

// pause pauses a queue, or resumes it.
func (w *world) pause(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	queue := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "queue")
	p := w.pauses[queue]
	if p == nil {
		p = &pauseAsked{}
		w.pauses[queue] = p
	}
	p.asked++
	mine := p.asked
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: wire.CommandPause, Queue: queue}
	if rapid.Bool().Draw(t, "resume") {
		cmd.Command = wire.CommandResume
	}
	epoch := s.core.ledger.Epoch()
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		require.Equal(w.t, wire.StatusDone, r.Status)
		if epoch < p.epoch { // it precedes what was already answered
			return
		}
		require.True(w.t, epoch > p.epoch || mine > p.answered, "an earlier one is answered later")
		p.answered, p.epoch, p.paused = mine, epoch, cmd.Command == wire.CommandPause
	}))
}

// checkPauses requires that the last answer stands, and that all sidecars agree.
func (w *world) checkPauses(s *modelSidecar) {
	paused := s.entries.Paused()
	for _, other := range w.sidecars {
		require.True(w.t, maps.Equal(paused, other.entries.Paused()), "%s and %s know different queues to be paused", s.name, other.name)
	}
	if w.journalLost {
		return // they stood there
	}
	for queue, p := range w.pauses {
		if _, is := paused[queue]; p.answered == p.asked {
			require.Equal(w.t, p.paused, is, "the last answer about queue %s does not hold", queue)
		}
	}
}

// keyAsked is what was requested under a key.
type keyAsked struct {
	one string // the jid that was answered
	at  place  // its entry
}

// enqueue requests a job under a key. There are few keys, so each is used again, by other leaders
// too, and with other jobs.
func (w *world) enqueue(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	key := fmt.Sprintf("k%d", rapid.IntRange(0, 5).Draw(t, "key"))
	k := w.keys[key]
	if k == nil {
		k = &keyAsked{}
		w.keys[key] = k
	}
	body := fmt.Sprintf(`{"class":"C","args":[%q,%d],"queue":%q}`, key, rapid.IntRange(0, 1).Draw(t, "args"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue"))
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: wire.CommandEnqueue, Key: key, Job: []byte(body)}
	asked := w.now
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		switch {
		case r.Status == wire.StatusConflict:
			return
		case r.Status != wire.StatusOK:
			require.Failf(w.t, "a job was not enqueued", "%+v", r)
		case k.one != "" && !w.forgets():
			require.Equal(w.t, k.one, r.JID, "the same key %s has another job", key)
		}
		k.one = r.JID
		if r.Entry != nil {
			w.enqueuedAt(k, r, body, asked)
		}
	}))
}

// forgets reports whether the journal, or the stream that has the entry, may have been created
// again: then a key is not known any more.
func (w *world) forgets() bool {
	return w.journalLost || w.truncated || w.broker.streams[wire.ScheduledJobs].generation > 0
}

// enqueuedAt notes the entry of a job that was answered: from here on it must not be lost.
func (w *world) enqueuedAt(k *keyAsked, r wire.Reply, body string, asked time.Time) {
	p := w.broker.place(wire.ScheduledJobs, *r.Entry)
	if w.appended[p] == nil {
		w.appended[p] = &appendedEntry{jid: r.JID, raw: body, dues: map[int]time.Time{0: asked}}
	}
	k.at = p
}

// checkKeys requires that every key that was answered has one job, which came once.
func (w *world) checkKeys(s *modelSidecar) {
	if w.forgets() {
		return
	}
	for key, k := range w.keys {
		if k.one == "" {
			continue
		}
		known, err := s.entries.Enqueued(key, w.now)
		require.NoError(w.t, err)
		require.NotNil(w.t, known, "key %s was answered, and no view knows it", key)
		require.Equal(w.t, k.one, known.JID)
	}
}

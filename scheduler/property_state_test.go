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
	one  string // the jid that was answered
	lost bool   // a power failure took its entry: the key may get another job

	first time.Time // the earliest request: a leader may carry it out, and end before it answers
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
		k = &keyAsked{first: w.now}
		w.keys[key] = k
	}
	body := fmt.Sprintf(`{"class":"C","args":[%q,%d],"queue":%q}`, key, rapid.IntRange(0, 1).Draw(t, "args"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue"))
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: wire.CommandEnqueue, Key: key, Job: []byte(body)}
	k.first = earliest(k.first, w.now)
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		switch {
		case r.Status == wire.StatusConflict:
			return
		case r.Status != wire.StatusOK:
			require.Failf(w.t, "a job was not enqueued", "%+v", r)
		case k.one == "" || w.forgets():
		case k.lost && k.one == r.JID: // the journal has it
			return
		case !k.lost:
			require.Equal(w.t, k.one, r.JID, "the same key %s has another job", key)
		}
		k.one, k.lost = r.JID, false
		if r.Entry != nil {
			w.enqueuedAt(r, body, earliest(k.first, w.now)) // the clock may have been set back before it was made
		}
	}))
}

// forgets reports whether the journal, or the stream that has the entry, may have been created
// again, or have lost records to retention: then a key may be unknown.
func (w *world) forgets() bool {
	return w.journalLost || w.trimmed || w.broker.streams[wire.ScheduledJobs].generation > 0
}

// loseKey notes that an entry is lost, perhaps that of a key.
func (w *world) loseKey(r wire.Record) {
	e, err := wire.ParseEntry(r.Stream, r.Offset, r.Body)
	for _, k := range w.keys {
		k.lost = k.lost || err == nil && e.JID == k.one
	}
}

// enqueuedAt notes the entry of a job that was answered: from here on it must not be lost.
func (w *world) enqueuedAt(r wire.Reply, body string, asked time.Time) {
	p := w.broker.place(wire.ScheduledJobs, *r.Entry)
	if w.appended[p] == nil {
		w.appended[p] = &appendedEntry{jid: r.JID, raw: body, dues: map[int]time.Time{0: asked}}
	}
}

// checkKeys requires that no key has two jobs, that the key of each entry is known, and that each
// key that was answered still has its job.
func (w *world) checkKeys(s *modelSidecar) {
	if w.forgets() {
		return
	}
	first, newest := map[string]int64{}, int64(0)
	for _, r := range w.broker.streams[wire.ScheduledJobs].records {
		if j, err := wire.ParseJournal(r.Body); err == nil && j.Type == wire.TypeBarrier {
			newest = max(newest, j.Epoch)
		}
		a, announces := wire.AnnouncementOf(&r)
		_, carried := w.broker.origin[w.broker.place(r.Stream, r.Offset)]
		late := wire.HeaderInt(r.Headers, wire.HeaderEpoch) < newest // of a leader that had been followed: void
		if !announces || a.What != wire.OpEnqueued || carried || late {
			continue
		}
		one, twice := first[a.Key]
		require.False(w.t, twice, "key %s has two jobs, at %d and %d", a.Key, one, a.Offset)
		first[a.Key] = a.Offset
		known, err := s.entries.Enqueued(a.Key, w.now)
		require.NoError(w.t, err)
		require.NotNil(w.t, known, "the journal does not know key %s, of %d", a.Key, a.Offset)
	}
	for key, k := range w.keys {
		if k.one == "" || k.lost {
			continue
		}
		known, err := s.entries.Enqueued(key, w.now)
		require.NoError(w.t, err)
		require.NotNil(w.t, known, "key %s was answered, and no view knows it", key)
		require.Equal(w.t, k.one, known.JID)
	}
}

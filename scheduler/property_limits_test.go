package scheduler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// Limits in the model: one limit counts all jobs of the class L. Workers report that these have
// ended, in any order and at any time.

// limitedJobs is what the world knows of jobs that the limit counts.
type limitedJobs struct {
	most    int             // how many may be out; 0: there is no limit
	byHand  map[holder]bool // what was fired although there was no room, because a user asked for it
	ended   map[string]bool // slots
	defined bool
}

// holder is an entry that holds a slot.
type holder struct {
	ledger.EntryID
	tag string
}

func holderOf(c *copyOf) holder {
	return holder{ledger.ID(c.headers.Stream, c.headers.Offset), c.headers.JIDTag}
}

// defineLimit has the leader set the limit.
func (w *world) defineLimit() {
	s := w.leader()
	if w.limited.most == 0 || w.limited.defined || s == nil || s.core.phase != phaseLeading {
		return
	}
	w.limited.defined = true
	d := &wire.Definitions{Source: "w", Limits: []json.RawMessage{fmt.Appendf(nil, `{"name":"l","classes":["L"],"concurrency":%d}`, w.limited.most)}}
	require.NoError(w.t, s.core.command(w.now, wire.Command{Command: wire.CommandDefine, Definitions: d}, func(wire.Reply) {}))
}

// appendLimited has a client publish jobs that the limit counts.
func (w *world) appendLimited(t *rapid.T) {
	if s := w.leader(); !w.limited.defined || s == nil || s.entries.Limits.Limit("l") == nil {
		return
	}
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		w.jids++
		jid, queue := fmt.Sprintf("l%d", w.jids), rapid.SampledFrom([]string{"a", "b", quorum}).Draw(t, "queue")
		job := fmt.Sprintf(`{"jid":%q,"class":"L","args":[],"queue":%q,"gate":{}}`, jid, queue)
		if rapid.Bool().Draw(t, "scheduled") {
			w.appendOne(wire.ScheduledJobs, jid, fmt.Sprintf(`{"jid":%q,"scheduled_at":%d,"job":%s}`, jid, w.now.Unix(), job), w.now.Truncate(time.Second))
			continue
		}
		offset := w.broker.append(wire.Gated, "client", wire.Message{Key: wire.Gated, Body: []byte(job)})
		w.broker.sure[wire.Gated] = int(offset) + 1
		w.appended[w.broker.place(wire.Gated, offset)] = &appendedEntry{jid: jid, dues: map[int]time.Time{0: {}}, raw: job}
	}
}

// out returns the copies of jobs that hold a slot: they were delivered, and have not ended.
func (w *world) out() map[holder]*copyOf {
	all := map[holder]*copyOf{}
	for _, c := range w.broker.copies {
		if p := holderOf(c); c.headers.Slot != "" && (!c.gone || c.running) && !c.dropped && !w.limited.ended[c.headers.Slot] {
			all[p] = c
		}
	}
	return all
}

// tookSlot checks the limit when a copy is delivered.
func (w *world) tookSlot(c *copyOf) {
	if c.headers.Slot == "" || isUnique(c.headers.JIDTag) {
		return
	}
	if c.headers.Op != wire.OpFired && c.headers.Op != wire.OpRefired || c.late {
		w.limited.byHand[holderOf(c)] = true
	}
	if w.slotsForgotten() {
		return
	}
	w.tookAhead(c)
	if c.class != "L" {
		return
	}
	n := 0
	for p, c := range w.out() { // of a job that may come twice, a copy that found no queue frees the slot
		if c.class == "L" && !w.limited.byHand[p] && !isUnique(p.tag) && w.broker.unsafe[w.placeOf(c)] == "" {
			n++
		}
	}
	if w.limited.defined {
		require.LessOrEqual(w.t, n, w.limited.most, "too many jobs of one limit are out")
	}
}

// slotsForgotten reports whether a leader may not know which slots are held: the journal has lost
// fires, or it never had them because the route to it was cut.
func (w *world) slotsForgotten() bool {
	return w.journalLost || w.recreated || w.late || w.broker.everCut
}

func sortedHolders(all map[holder]*copyOf) []holder {
	return slices.SortedFunc(mapsKeys(all), func(a, b holder) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.tag, b.tag))
	})
}

// running returns the jobs that run.
func (w *world) running() map[holder]*copyOf {
	all := map[holder]*copyOf{}
	for _, c := range w.copiesThat(runs) {
		all[holderOf(c)] = c
	}
	return all
}

// endJob has a worker report that a job has ended. It may do so twice.
func (w *world) endJob(t *rapid.T) {
	out := w.running()
	if len(out) == 0 {
		w.work(t)
		return
	}
	all := sortedHolders(out)
	p := rapid.SampledFrom(all).Draw(t, "ends")
	ended := []*copyOf{out[p]}
	if q := rapid.SampledFrom(all).Draw(t, "ends too"); q != p {
		ended = append(ended, out[q])
	}
	for _, c := range ended {
		w.failJob(t, c)
	}
	w.end(ended...)
	if rapid.IntRange(0, 9).Draw(t, "twice") == 0 {
		w.end(out[p])
	}
}

// end has a worker report in one record that jobs have ended.
func (w *world) end(all ...*copyOf) {
	e := wire.End{Type: wire.TypeEnded}
	for _, c := range all {
		e.Slots = append(e.Slots, c.headers.Slot)
	}
	if len(all) == 1 {
		e.Slot, e.Slots = e.Slots[0], nil
	}
	m, err := e.Message()
	require.NoError(w.t, err)
	w.broker.append(wire.JobEnds, "client", m)
	for _, c := range all {
		w.limited.ended[c.headers.Slot], c.running = true, false
		if !w.retried(c.headers.JIDTag) {
			w.uniqueEnds(c.headers.JIDTag)
		}
	}
}

// endJobs has the workers end all jobs.
func (w *world) endJobs() {
	w.beginAll()
	for _, c := range w.copiesThat(runs) {
		w.end(c)
	}
}

// auditSlots has the leader free the slots of queues that have no such jobs. These jobs were lost,
// for example with the stream to which they came back.
func (w *world) auditSlots() {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	has := map[string]bool{}
	for _, c := range w.out() {
		has[c.queue] = true
	}
	var gone []wire.HeldSlot
	require.NoError(w.t, s.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		if !has[h.Queue] {
			gone = append(gone, *h)
		}
		return true
	}))
	require.NoError(w.t, s.core.limits.freeGone(w.now, gone))
}

// checkSlots requires that no slot is held when all jobs have ended.
func (w *world) checkSlots(s *modelSidecar) {
	if w.slotsForgotten() {
		return
	}
	require.NoError(w.t, s.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		require.Failf(w.t, "a slot is held at rest", "%+v", h)
		return true
	}))
	require.Zero(w.t, s.core.limits.gate.Held(), "the leader counts slots that nothing holds")
}

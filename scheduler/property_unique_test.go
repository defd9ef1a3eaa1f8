package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// Unique jobs in the model: producers publish jobs with few keys. The world knows from the streams
// alone which job has a key, and checks each decision when the broker takes its record.

// uniqueJobs is what the world knows of unique jobs.
type uniqueJobs struct {
	keys    map[string]*uniqueKey // by jid
	publish map[string]int        // by jid, how often it was published
	outdone map[string]bool       // jids that were decided to be duplicates, or were replaced
	had     map[string]bool       // jids that had their keys
	decided map[place]bool        // entries
	answers map[string]wire.Reply // by jid, the first
	latest  int64                 // the latest time of a decision, in microseconds
}

// uniqueKey is one key.
type uniqueKey struct {
	name     string
	waiting  bool            // it is free when its job is delivered
	open     map[string]bool // jids that have the key and have not ended
	last     int64           // the entry of jobs.gated that was decided last
	until    int64           // it is taken until then, by a jid
	untilJID string
}

const uniqueKeys = 3

func newUniqueJobs() uniqueJobs {
	return uniqueJobs{keys: map[string]*uniqueKey{}, publish: map[string]int{}, outdone: map[string]bool{}, had: map[string]bool{},
		decided: map[place]bool{}, answers: map[string]wire.Reply{}}
}

// isUnique reports whether a jid is that of a unique job.
func isUnique(jid string) bool { return strings.HasPrefix(jid, "u") }

// appendUnique has clients publish unique jobs, some of them twice.
func (w *world) appendUnique(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		w.jids++
		jid, n := fmt.Sprintf("u%d", w.jids), rapid.IntRange(0, uniqueKeys-1).Draw(t, "key")
		key := w.uniqueKey(n)
		w.unique.keys[jid] = key
		unique := fmt.Sprintf(`"key":%q`, key.name)
		if key.waiting {
			unique += `,"while":"waiting"`
		}
		unique += rapid.SampledFrom([]string{"", `,"on":"replace"`, `,"on":"replace","wait":3`, `,"wait":2,"max":5`, `,"for":4`}).Draw(t, "how")
		at := rapid.SampledFrom([]string{"", fmt.Sprintf(`"at":%d,`, w.now.Unix()+3)}).Draw(t, "at")
		job := fmt.Sprintf(`{"jid":%q,"class":"U","args":[],"queue":%q,"gate":{%s"unique":{%s}}}`, jid, rapid.SampledFrom([]string{"a", "b", quorum}).Draw(t, "queue"), at, unique)
		w.publishUnique(jid, job)
		if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
			w.publishUnique(jid, job)
		}
	}
}

func (w *world) uniqueKey(n int) *uniqueKey {
	name := fmt.Sprintf("k%d", n)
	for _, k := range w.unique.keys {
		if k.name == name {
			return k
		}
	}
	return &uniqueKey{name: name, waiting: n == 0, open: map[string]bool{}, last: -1}
}

func (w *world) publishUnique(jid, job string) {
	w.unique.publish[jid]++
	offset := w.broker.append(wire.Gated, "client", wire.Message{Key: wire.Gated, ReplyTo: "amq.rabbitmq.reply-to.x", CorrelationID: jid, Body: []byte(job)})
	w.broker.sure[wire.Gated] = int(offset) + 1
	w.appended[w.broker.place(wire.Gated, offset)] = &appendedEntry{jid: jid, dues: map[int]time.Time{0: {}}, raw: job}
}

// endFirst has a job fail while another with its key waits, and the leader read that it has ended
// before it reads the retry.
func (w *world) endFirst(t *rapid.T) {
	w.appendUnique(t)
	for range 6 {
		w.round()
	}
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	w.beginAll()
	for range 2 {
		w.round()
	}
	out := w.running()
	for _, p := range sortedHolders(out) {
		k := w.unique.keys[p.tag]
		if k == nil || s != w.leader() {
			continue
		}
		w.failJob(t, out[p])
		w.end(out[p])
		w.jids++
		jid := fmt.Sprintf("u%d", w.jids)
		w.unique.keys[jid] = k
		w.publishUnique(jid, fmt.Sprintf(`{"jid":%q,"class":"U","queue":"a","gate":{"unique":{"key":%q}}}`, jid, k.name))
		break
	}
	for range 2 {
		require.NoError(t, s.read(wire.JobEnds, 1<<30))
		require.NoError(t, s.read(wire.Gated, 1<<30))
		if s == w.leader() {
			w.step(s)
		}
	}
}

// failJob has a worker write a retry of a unique job, if it may, before it reports the end.
func (w *world) failJob(t *rapid.T, c *copyOf) {
	jid := c.headers.JIDTag
	if !isUnique(jid) || rapid.Bool().Draw(t, "succeeds") {
		return
	}
	for _, e := range w.appended {
		if e.jid == jid && strings.HasPrefix(e.raw, `{"jid"`) && w.unique.publish[jid] == 1 {
			w.unique.publish[jid]++ // once
			w.appendOne(wire.Retries, jid, fmt.Sprintf(`{"jid":%q,"retry_at":%d,"retry_count":1,"job":%s}`, jid, w.now.Unix()+1, e.raw), w.now.Truncate(time.Second).Add(time.Second))
			return
		}
	}
}

// retried reports whether a job has a retry that was not delivered yet.
func (w *world) retried(jid string) bool {
	for p, e := range w.appended {
		if e.jid == jid && p.stream == wire.Retries && w.copiesOf(p) == 0 {
			return true
		}
	}
	return false
}

// uniqueEnds takes in that a job of a key has ended, or that its entry has.
func (w *world) uniqueEnds(jid string) {
	if k := w.unique.keys[jid]; k != nil {
		delete(k.open, jid)
	}
}

// uniqueDelivered takes in that a unique job was delivered.
func (w *world) uniqueDelivered(c *copyOf) {
	jid := c.headers.JIDTag
	k := w.unique.keys[jid]
	if k == nil || w.slotsForgotten() {
		return
	}
	if c.headers.Stream == wire.Gated && c.headers.Op == wire.OpFired && !c.late && w.broker.unsafe[w.placeOf(c)] == "" {
		require.True(w.t, w.unique.had[jid], "%s was fired, and it was not decided that it has its key", jid)
	}
	require.True(w.t, k.waiting || c.headers.Slot != "", "%s must take a slot if its key is taken until it has ended", jid)
	if k.waiting {
		delete(k.open, jid)
	}
}

// decides checks decisions when the broker takes their record.
func (w *world) decides(j *wire.JournalRecord) {
	at := int64(j.At * 1e6)
	w.unique.latest = max(w.unique.latest, at)
	for _, d := range j.Decisions {
		k := w.unique.keys[d.JID]
		require.NotNil(w.t, k, "a decision about a job that was not published: %+v", d)
		w.inOrder(k, d)
		switch d.Outcome {
		case wire.UniqueAdmitted:
			w.admitted(k, d, at)
		case wire.UniqueDuplicate:
			w.unique.outdone[d.JID] = true
			if !w.slotsForgotten() {
				require.True(w.t, w.unique.had[d.Of] && w.unique.keys[d.Of] == k, "%s is no duplicate of %s, which never had the key", d.JID, d.Of)
			}
		}
	}
}

// inOrder requires that the entries of a key are decided in their order, each once.
func (w *world) inOrder(k *uniqueKey, d wire.Decision) {
	here := place{wire.Gated, w.broker.streams[wire.Gated].generation, d.Offset}
	p := w.broker.first(here)
	if w.slotsForgotten() || p.generation != here.generation || p.stream != wire.Gated {
		return
	}
	require.False(w.t, w.unique.decided[p], "%v is decided twice", p)
	w.unique.decided[p] = true
	require.Less(w.t, k.last, p.offset, "%s at %d is decided behind a later one", d.JID, p.offset)
	k.last = p.offset
}

// admitted requires that no other job has the key.
func (w *world) admitted(k *uniqueKey, d wire.Decision, at int64) {
	if d.Holder != nil {
		delete(k.open, d.HolderJID)
		w.unique.outdone[d.HolderJID] = true
	}
	for other := range k.open {
		if other != d.JID && !w.slotsForgotten() && !w.broker.unsafeTags[other] && !w.mayBeGone(other) {
			require.Failf(w.t, "two jobs have one key", "%s gets key %s, and %s has not ended", d.JID, k.name, other)
		}
	}
	if k.until > w.unique.latest && d.Holder == nil && !w.slotsForgotten() {
		require.Failf(w.t, "a key is taken for a time", "%s gets key %s, which %s has until %d, now it is %d", d.JID, k.name, k.untilJID, k.until, at)
	}
	k.until, k.untilJID = d.Until, d.JID
	k.open[d.JID], w.unique.had[d.JID] = true, true
}

// answered takes in the answer of a leader to a publisher.
func (w *world) answered(to wire.Delivery, r wire.Reply) {
	jid := to.CorrelationID
	if first, known := w.unique.answers[jid]; known && w.unique.publish[jid] == 1 && !w.slotsForgotten() {
		require.Equal(w.t, first, r, "%s was answered twice", jid)
	}
	w.unique.answers[jid] = r
	switch r.Status {
	case wire.StatusCreated:
		require.True(w.t, w.unique.had[jid], "%s was answered that it has its key, and it has not", jid)
	case wire.StatusOK:
		require.True(w.t, w.unique.outdone[jid], "%s was answered that it is a duplicate, and it is not", jid)
	}
}

// noteUnique takes in a record of the journal that counts.
func (w *world) noteUnique(j *wire.JournalRecord) {
	switch j.Type {
	case wire.TypeDecided:
		w.decides(j)
	case wire.TypeDeleted, wire.TypeKilled, wire.TypeExpired:
		w.uniqueEnds(j.JID)
	}
}

// checkUnique requires that every unique job was decided, no duplicate was delivered, and no key is
// held by what is not there any more.
func (w *world) checkUnique() {
	for _, s := range w.sidecars {
		require.Zero(w.t, s.entries.UndecidedJobs(), "unique jobs wait for a decision at rest")
		require.NoError(w.t, s.entries.Unique.Each(w.holdStands(s)))
	}
	if w.slotsForgotten() {
		return
	}
	for jid := range w.unique.outdone {
		if w.unique.had[jid] || w.unique.publish[jid] > 1 {
			continue
		}
		require.False(w.t, w.arrived(jid), "%s is a duplicate, and was delivered", jid)
	}
	for jid, r := range w.unique.answers {
		if w.unique.publish[jid] == 1 && r.Status == wire.StatusCreated {
			require.False(w.t, w.unique.outdone[jid] && !w.unique.had[jid], "%s was answered that it has its key", jid)
		}
	}
}

// holdStands returns what requires of a hold that its job exists.
func (w *world) holdStands(s *modelSidecar) func(*tracker.KeyHold) bool {
	return func(h *tracker.KeyHold) bool {
		switch {
		case h.IsPeriod():
		case h.Slot:
			held, err := s.entries.Slots.HeldSlot(h.Stream, h.Offset, h.JID)
			require.NoError(w.t, err)
			require.NotNil(w.t, held, "key %s is held by a slot that is free", h.Key)
		default:
			require.NotEqual(w.t, wire.DeadJobs, h.Stream, "a dead job holds key %s", h.Key)
			e, err := s.entries.Get(h.Stream, h.Offset)
			require.NoError(w.t, err)
			require.NotNil(w.t, e, "key %s is held by an entry that is gone", h.Key)
		}
		return true
	}
}

package scheduler

import (
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

func (w *world) disconnect(t *rapid.T) {
	if s := w.leader(); s != nil {
		w.dieInFlight(t, s)
		s.disconnect()
	}
}

func (w *world) killSidecar(t *rapid.T) {
	s := w.pick(t)
	if s.core != nil {
		w.dieInFlight(t, s)
		s.lose()
	}
	require.NoError(t, s.restart())
}

func (w *world) forget(t *rapid.T) { w.forgetOne(t, w.pick(t)) }

func (w *world) forgetOne(t *rapid.T, s *modelSidecar) {
	if s.core != nil {
		w.dieInFlight(t, s)
		s.lose()
	}
	require.NoError(t, s.forget())
}

// dieInFlight has the broker process some of what a dying connection had sent, and notes what its
// leader can never know.
func (w *world) dieInFlight(t *rapid.T, s *modelSidecar) {
	answered := len(w.broker.copies)
	s.conn.heal()
	for range rapid.IntRange(0, len(s.conn.out)).Draw(t, "still processed") {
		w.broker.process(s.conn, w.now)
	}
	w.dropTail(t, w.broker.copies[answered:])
	w.broker.confirm(s.conn)
	w.excuseRefusals()
}

// excuseRefusals notes what may be fired again because an epoch ends: its queue may have refused
// it.
func (w *world) excuseRefusals() {
	for _, c := range w.broker.copies {
		if w.refuses(c.queue) && !c.gone { // it may have been refused: it is fired again, rather than lost
			w.broker.unsafe[w.broker.place(c.headers.Stream, c.headers.Offset)] = "its queue may refuse, and the epoch ended"
			w.broker.unsafeTags[c.headers.JIDTag] = true
		}
	}
}

// dropTail has a quorum queue lose what its publisher had open when that publisher's channel ended.
func (w *world) dropTail(t *rapid.T, open []*copyOf) {
	lost := false
	for _, c := range open {
		lost = lost || rapid.Bool().Draw(t, "tail lost")
		c.gone = c.gone || lost && c.queue == quorum
	}
}

// killHome is the death of the node that one queue of a cluster stands on. What was not confirmed
// is gone, or comes back with the node, and is refused or never answered. The leader may die at the
// same moment.
func (w *world) killHome(t *rapid.T) { w.loseOpen(t, func() { w.broker.nodes++ }) }

// cutLink breaks the link to a queue's node, and restores it. What was on its way is gone. The
// broker reports that a while later.
func (w *world) cutLink(t *rapid.T) { w.loseOpen(t, func() { w.broker.links++ }) }

// firing has a leader fire some jobs that the broker has not processed yet. It returns nil if there
// is no suitable leader.
func (w *world) firing(t *rapid.T, fits func(*modelSidecar) bool) *modelSidecar {
	w.elect(t)
	for range 6 {
		w.round()
	}
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || !fits(s) {
		return nil
	}
	w.append(t)
	w.appendLimited(t)
	require.NoError(t, s.readAll())
	w.step(s)
	if s != w.leader() {
		return nil
	}
	return s
}

// loseFires ends the process that leads the journal: some fires reach only their queues, and are
// never answered. No node has to die for this.
func (w *world) loseFires(t *rapid.T) {
	s := w.firing(t, func(s *modelSidecar) bool { return !s.conn.cut && !w.broker.muted })
	if s == nil {
		return
	}
	end := w.broker.streams[wire.Journal].end()
	for len(s.conn.out) > 0 {
		w.broker.process(s.conn, w.now)
	}
	s.conn.answers = slices.DeleteFunc(s.conn.answers, func(a answer) bool {
		c := a.copy
		if c == nil || c.confirmed || c.record < int64(end) || !rapid.Bool().Draw(t, "lost in the journal") {
			return false
		}
		w.broker.unjournal(c)
		c.confirmed = true // its queue keeps it
		w.broker.unsafe[w.broker.place(c.headers.Stream, c.headers.Offset)] = "the journal lost the fire"
		w.broker.unsafeTags[c.headers.JIDTag] = true
		return true
	})
}

// silence has the management API stop answering, or answer again.
func (w *world) silence(*rapid.T) { w.broker.silent = !w.broker.silent }

// loseOpen loses some of what one queue of a cluster had not confirmed.
func (w *world) loseOpen(t *rapid.T, fault func()) {
	if !w.broker.cluster {
		return
	}
	s := w.firing(t, func(*modelSidecar) bool { return true })
	if s == nil {
		return
	}
	for range rapid.IntRange(0, len(s.conn.out)).Draw(t, "processed") {
		w.broker.process(s.conn, w.now)
	}
	if rapid.Bool().Draw(t, "claimed") {
		w.claimOpen(s)
		defer w.takeAll(t)
	}
	fault()
	queue := rapid.SampledFrom([]string{"a", "b", quorum}).Draw(t, "queue")
	var left []answer
	for _, a := range s.conn.answers {
		if a.copy == nil || a.copy.queue != queue || a.copy.confirmed {
			left = append(left, a)
			continue
		}
		a.copy.confirmed, a.copy.gone = true, rapid.Bool().Draw(t, "gone")
		a.copy.running = a.copy.running && rapid.Bool().Draw(t, "its worker lives on")
		w.broker.unsafe[w.broker.place(a.copy.headers.Stream, a.copy.headers.Offset)] = "the node of its queue died with the fire unconfirmed"
		w.broker.unsafeTags[a.copy.headers.JIDTag] = true
		if !rapid.Bool().Draw(t, "unanswered") {
			a.ack = false
			left = append(left, a)
		}
	}
	s.conn.answers = left
	switch rapid.IntRange(0, 2).Draw(t, "leader") {
	case 0:
		w.dieInFlight(t, s)
		s.lose()
		require.NoError(t, s.restart())
	case 1:
		w.dieInFlight(t, s)
		s.disconnect()
	}
}

// killBroker loses what was not confirmed, and every connection.
func (w *world) killBroker(t *rapid.T) {
	var c *modelConn
	s := w.leader()
	if s != nil {
		c = s.conn
	}
	for _, p := range w.broker.openDispatches(c, false) { // a burial is in a stream, which can be read
		w.broker.unsafe[p] = "the broker died with the fire unconfirmed"
	}
	if s != nil {
		for range rapid.IntRange(0, len(s.conn.out)).Draw(t, "still processed") {
			w.broker.torn = rapid.Bool().Draw(t, "torn")
			w.broker.ended = w.broker.ended || rapid.IntRange(0, 3).Draw(t, "ended") == 0
			w.broker.process(s.conn, w.now)
		}
		w.broker.torn, w.broker.ended = false, false
		s.disconnect()
	}
	for _, c := range w.broker.copies {
		if !c.confirmed && rapid.Bool().Draw(t, "lost") {
			c.gone = true
		}
		c.confirmed, c.running = true, false
	}
	w.broker.witness = ""
}

// killQueue is the death of one queue's process: what it had not confirmed is gone, and refused.
func (w *world) killQueue(t *rapid.T) {
	s := w.leader()
	if s == nil {
		return
	}
	queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	for i := range s.conn.answers {
		a := &s.conn.answers[i]
		if a.copy != nil && a.copy.queue == queue && !a.copy.confirmed {
			a.copy.gone, a.ack = true, false
			a.copy.confirmed, a.copy.running = true, false
			if !w.refuses(queue) {
				w.broker.unsafeTags[a.copy.headers.JIDTag] = true
				// If the leader dies before it reads this, the loss is unknown: the one stated
				// exception.
				w.broker.gone[w.broker.place(a.copy.headers.Stream, a.copy.headers.Offset)] = "its queue died alone, and the leader too"
			}
		}
	}
}

func (w *world) refuse(t *rapid.T) { w.broker.full["b"] = !w.broker.full["b"] }

func (w *world) recreate(t *rapid.T) {
	if w.broker.unnoticed || rapid.IntRange(0, 3).Draw(t, "rarely") != 0 {
		return
	}
	stream := rapid.SampledFrom(wire.EntryStreams).Draw(t, "stream")
	old := w.broker.streams[stream]
	if s := w.leader(); s != nil { // the leader's readers are cancelled
		w.dieInFlight(t, s)
		s.disconnect()
	}
	w.recreated = true
	w.broker.loseRepeated(stream)
	w.broker.streams[stream] = &modelStream{generation: old.generation + 1}
	w.broker.unnoticed = true
}

// lateRecord is a last record of a leader that has been followed: it must not count.
func (w *world) lateRecord(t *rapid.T) {
	journal := w.broker.streams[wire.Journal]
	var epochs []int64
	for _, r := range journal.records {
		if j, err := wire.ParseJournal(r.Body); err == nil && j.Type == wire.TypeOpened {
			epochs = append(epochs, r.Offset)
		}
	}
	if len(epochs) < 2 || len(w.appended) == 0 {
		return
	}
	old := rapid.SampledFrom(epochs[:len(epochs)-1]).Draw(t, "epoch")
	if stream := rapid.SampledFrom(leaderStreams).Draw(t, "stream"); stream != wire.Journal {
		w.lateBarrier(stream, old)
		return
	}
	for _, p := range w.places() {
		e := w.appended[p]
		if p.generation != w.broker.streams[p.stream].generation {
			continue
		}
		r := wire.JournalRecord{Type: wire.TypeDeleted, Epoch: old, Stream: p.stream, Offset: p.offset, JID: wire.JIDTag(e.jid)}
		w.broker.append(wire.Journal, millrace, r.Append(wire.Journal, 1_000_000, 0))
		w.late = true
		break
	}
}

// lateBarrier is a barrier of a leader that had been followed, after the barrier of its successor.
func (w *world) lateBarrier(stream string, epoch int64) {
	for at, r := range w.broker.streams[stream].records { // its leader had read none of those
		if j, err := wire.ParseJournal(r.Body); err == nil && r.UserID == millrace && j.Type == wire.TypeBarrier && j.Epoch > epoch {
			read := int64(w.broker.streams[stream].base+at) - 1
			offset := w.broker.append(stream, millrace, wire.JournalRecord{Type: wire.TypeBarrier, Epoch: epoch, Read: &read}.Append(stream, 0, 0))
			s := w.broker.streams[stream]
			s.late = append(s.late, span{int(read) + 1, int(offset)})
			return
		}
	}
}

// retention takes what low water allows, and may overtake readers.
func (w *world) retention(t *rapid.T) {
	overtakes := rapid.Bool().Draw(t, "overtakes")
	for _, name := range slices.Sorted(maps.Keys(w.broker.streams)) {
		stream := w.broker.streams[name]
		below := stream.beforeLate(min(stream.spent, stream.end()))
		for _, s := range w.sidecars {
			if s.gen[name] != stream.generation {
				below = 0
			}
			if !overtakes {
				below = min(below, max(s.at[name]-1, 0))
			}
		}
		if below > stream.base {
			stream.records = stream.records[below-stream.base:]
			stream.base = below
			w.truncated, w.trimmed = true, true
		}
	}
}

// loseJournal deletes the journal; the leader stops. If an entry stream was created again too,
// before any leader has seen either loss, the entries of the new stream may count as settled: a
// stated exception.
func (w *world) loseJournal(t *rapid.T) {
	if w.broker.unnoticed || rapid.IntRange(0, 3).Draw(t, "rarely") != 0 {
		return
	}
	w.stopLeader(t)
	old := w.broker.streams[wire.Journal]
	w.broker.streams[wire.Journal] = &modelStream{generation: old.generation + 1}
	w.late, w.broker.frozen = false, nil
	w.broker.newest = -1
	clear(w.broker.known) // epochs begin again
	clear(w.broker.changesAt)
	clear(w.broker.blind)
	clear(w.broker.bare)
}

// stopLeader ends the leader's connection if a stream goes that it was reading, and notes whose
// fires are unknown from then on.
func (w *world) stopLeader(t *rapid.T) {
	s := w.leader()
	if s != nil {
		w.dieInFlight(t, s)
		s.disconnect()
	}
	open := w.broker.openDispatches(nil, true)
	for _, s := range w.sidecars { // a sidecar that had not read that they were confirmed never will
		doubts, err := s.entries.Doubts()
		require.NoError(t, err)
		for _, d := range doubts {
			open = append(open, w.broker.first(place{d.ID.Stream, s.gen[d.ID.Stream], d.ID.Offset}))
		}
	}
	for _, p := range open {
		w.broker.unsafe[p] = "the journal was lost with the fire unconfirmed"
	}
	for _, p := range w.broker.refusedCopies { // views that know of the loss at different times settle different ones
		w.broker.gone[p] = "its fire came back and was refused, and the journal was lost"
	}
	w.broker.forgetStrays()
	w.truncated, w.broker.unnoticed, w.journalLost = true, true, true
}

// forgetJournal has the journal forget what is still needed, as an operator's limit may. If it
// forgets the record that ended a leader, the last records of that leader look valid.
func (w *world) forgetJournal(t *rapid.T) {
	if w.late || w.broker.unnoticed || rapid.IntRange(0, 3).Draw(t, "rarely") != 0 {
		return
	}
	w.stopLeader(t)
	stream := w.broker.streams[wire.Journal]
	clear(w.broker.known)
	if n := rapid.IntRange(0, len(stream.records)).Draw(t, "records"); n > 0 && n < len(stream.records) {
		stream.records, stream.base = stream.records[n:], stream.base+n
	}
}

// forge is a client that writes where only Millrace may.
func (w *world) forge(t *rapid.T) {
	epoch, _ := w.sidecars[0].entries.Progress()
	r := wire.JournalRecord{Type: wire.TypeLowWater, Epoch: epoch, LowWater: map[string]int64{wire.ScheduledJobs: 1 << 40, wire.Retries: 1 << 40}}
	w.broker.append(wire.Journal, "client", r.Append(wire.Journal, 7, 1<<40))
	b := wire.JournalRecord{Type: wire.TypeBarrier, Epoch: 1 << 40}
	w.broker.append(wire.ScheduledJobs, "client", b.Append(wire.ScheduledJobs, 0, 0))
	m := wire.Message{Headers: map[string]any{wire.HeaderReplaces: int64(0), wire.HeaderFirst: int64(0), wire.HeaderEpoch: epoch},
		Body: []byte(`{"jid":"forged","retry_at":1,"job":{"class":"C"}}`)}
	w.broker.append(wire.Retries, "client", m)
}

package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

func (w *world) append(t *rapid.T) {
	stream := rapid.SampledFrom(wire.EntryStreams).Draw(t, "stream")
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		w.jids++
		due := w.now.Add(time.Duration(rapid.IntRange(-2, 5).Draw(t, "due")) * time.Second).Truncate(time.Second)
		member := map[string]string{wire.ScheduledJobs: "scheduled_at", wire.Retries: "retry_at", wire.DeadJobs: "died_at"}[stream]
		queue := rapid.SampledFrom([]string{"a", "b", quorum}).Draw(t, "queue")
		jid, named := fmt.Sprintf("j%d", w.jids), ""
		if rapid.IntRange(0, 3).Draw(t, "named") != 0 {
			named = fmt.Sprintf(`"jid":%q,`, jid)
		} else {
			jid = ""
		}
		if stream == wire.Gated {
			w.appendGated(t, jid, named, queue)
			continue
		}
		raw := fmt.Sprintf(`{%s%q:%d,"retry_count":1,"job":{"class":"C","args":[%d],"queue":%q}}`, named, member, due.Unix(), w.jids, queue)
		w.appendOne(stream, jid, raw, due)
		if named != "" && rapid.IntRange(0, 9).Draw(t, "again") == 0 { // a repetition of the same publish
			w.appendOne(stream, jid, raw, due)
		}
	}
}

// appendGated has a client publish a job whose queue is not bound, or to jobs.gated itself.
func (w *world) appendGated(t *rapid.T, jid, named, queue string) {
	m := wire.Message{Body: fmt.Appendf(nil, `{%s"class":"C","args":[%d],"queue":%q}`, named, w.jids, queue)}
	if rapid.Bool().Draw(t, "by its exchange") {
		m.Exchange, m.Key = wire.ExchangeDirect, queue
	}
	offset := w.broker.append(wire.Gated, "client", m)
	if jid == "" {
		jid = wire.DerivedJID(wire.Gated, offset, m.Body)
	}
	w.broker.sure[wire.Gated] = int(offset) + 1
	w.appended[w.broker.place(wire.Gated, offset)] = &appendedEntry{jid: jid, dues: map[int]time.Time{0: {}}, raw: string(m.Body)}
}

// unroute makes queues vanish, or unavailable, or refuse fires that came back.
func (w *world) unroute(t *rapid.T) {
	queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0, 1:
		w.broker.missing[queue] = true
	case 2:
		w.broker.away[queue] = !w.broker.away[queue]
	case 3:
		w.broker.halves = rapid.IntRange(1, 3).Draw(t, "fires")
	}
}

func (w *world) appendOne(stream, jid, raw string, due time.Time) {
	offset := w.broker.append(stream, "client", wire.Message{Body: []byte(raw)})
	w.broker.sure[stream] = int(offset) + 1
	if jid == "" {
		jid = wire.DerivedJID(stream, offset, []byte(raw))
	}
	w.appended[w.broker.place(stream, offset)] = &appendedEntry{jid: jid, dues: map[int]time.Time{0: due}, raw: raw, dead: stream == wire.DeadJobs}
}

func (w *world) read(t *rapid.T) {
	s := w.pick(t)
	stream := rapid.SampledFrom(append(slices.Clone(leaderStreams), wire.JobEnds)).Draw(t, "stream")
	require.NoError(t, s.read(stream, rapid.IntRange(1, 10).Draw(t, "n")))
}

func (w *world) refuses(queue string) bool { return queue == refusing } // the broker reports it

// elect elects a leader if there is none. The leader may have read less than there is.
func (w *world) elect(t *rapid.T) {
	s := w.pick(t)
	if !w.waitForLease(s) {
		return
	}
	if w.broker.conn == nil && s.core == nil && s.followed && rapid.Bool().Draw(t, "behind") {
		s.stand(w.refuses)
		return
	}
	require.NoError(t, s.elect(w.refuses))
}

// lead moves the leader on by some of its events.
func (w *world) lead(t *rapid.T) {
	for range rapid.IntRange(1, 12).Draw(t, "moves") {
		w.move(t)
	}
}

func (w *world) move(t *rapid.T) {
	s := w.leader()
	if s == nil {
		return
	}
	switch rapid.IntRange(0, 3).Draw(t, "move") {
	case 0:
		w.step(s)
	case 1:
		w.broker.process(s.conn, w.now)
	case 2:
		w.reorderConfirms(t, s)
		w.answer(s)
	case 3:
		require.NoError(t, s.read(wire.Journal, 3))
	}
	w.boundOpen(s)
}

// reorderConfirms delivers a later confirm before the next one: each queue answers by itself.
func (w *world) reorderConfirms(t *rapid.T, s *modelSidecar) {
	if n := len(s.conn.answers); n > 1 {
		i := rapid.IntRange(0, min(n, 6)-1).Draw(t, "overtakes")
		later := s.conn.answers[i]
		s.conn.answers = slices.Insert(slices.Delete(s.conn.answers, i, i+1), 0, later)
	}
}

// boundOpen checks how many publishes a leader has open.
func (w *world) boundOpen(s *modelSidecar) {
	if s.core != nil {
		require.LessOrEqual(w.t, s.core.ledger.Open(), ledger.MaxOpen+ledger.MaxAside)
	}
}

// answer hands the leader its next confirm, which may end its epoch.
func (w *world) answer(s *modelSidecar) {
	err := s.answer(w.now)
	if endsBy(err) {
		w.ends = append(w.ends, err)
		w.dieInFlight(w.t, s)
		s.disconnect()
		return
	}
	require.NoError(w.t, err)
}

// run lets the leader work undisturbed for a while.
func (w *world) run(t *rapid.T) {
	for range rapid.IntRange(1, 20).Draw(t, "rounds") {
		w.round()
	}
}

func (w *world) round() {
	s := w.leader()
	if s == nil {
		return
	}
	w.step(s)
	for s.conn != nil && len(s.conn.out) > 0 {
		w.broker.process(s.conn, w.now)
	}
	for s.conn != nil && len(s.conn.answers) > 0 {
		w.answer(s)
	}
	require.NoError(w.t, s.readAll())
}

func (w *world) pass(t *rapid.T) {
	w.broker.linkSeen = w.broker.links
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms")) * time.Millisecond)
}

// lingers returns for how long low water lingers in the model.
const lingers = 6 * time.Second

// carry has the leader append pending entries again, so that low water can move.
func (w *world) carry(t *rapid.T) {
	if s := w.leader(); s != nil {
		require.NoError(t, s.core.beginCarry(lingers))
	}
}

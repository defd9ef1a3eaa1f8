package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

func (w *world) append(t *rapid.T) {
	stream := rapid.SampledFrom(wire.EntryStreams).Draw(t, "stream")
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		w.jids++
		due := w.now.Add(time.Duration(rapid.IntRange(-2, 5).Draw(t, "due")) * time.Second).Truncate(time.Second)
		member := map[string]string{wire.ScheduledJobs: "scheduled_at", wire.Retries: "retry_at", wire.DeadJobs: "died_at"}[stream]
		queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
		jid, named := fmt.Sprintf("j%d", w.jids), ""
		if rapid.IntRange(0, 3).Draw(t, "named") != 0 {
			named = fmt.Sprintf(`"jid":%q,`, jid)
		} else {
			jid = ""
		}
		raw := fmt.Sprintf(`{%s%q:%d,"retry_count":1,"job":{"class":"C","args":[%d],"queue":%q}}`, named, member, due.Unix(), w.jids, queue)
		w.appendOne(stream, jid, raw, due)
		if named != "" && rapid.IntRange(0, 9).Draw(t, "again") == 0 { // the same publish, repeated
			w.appendOne(stream, jid, raw, due)
		}
	}
}

func (w *world) appendOne(stream, jid, raw string, due time.Time) {
	offset := w.broker.append(stream, "client", wire.Message{Body: []byte(raw)})
	if jid == "" {
		jid = wire.DerivedJID(stream, offset, []byte(raw))
	}
	w.appended[w.broker.place(stream, offset)] = &appendedEntry{jid: jid, dues: map[int]time.Time{0: due}, raw: raw, dead: stream == wire.DeadJobs}
}

func (w *world) read(t *rapid.T) {
	s := w.pick(t)
	stream := rapid.SampledFrom(ledBy).Draw(t, "stream")
	require.NoError(t, s.read(stream, rapid.IntRange(1, 10).Draw(t, "n")))
}

func (w *world) refuses(queue string) bool { return queue == "b" } // by its policy, which the broker tells

// elect has somebody lead, if nobody does; it may have read less than there is.
func (w *world) elect(t *rapid.T) {
	s := w.pick(t)
	if w.broker.conn == nil && s.followed && rapid.Bool().Draw(t, "behind") {
		s.stand(w.refuses)
		return
	}
	require.NoError(t, s.elect(w.refuses))
}

// lead moves the leader on by some of the things that happen to it.
func (w *world) lead(t *rapid.T) {
	for range rapid.IntRange(1, 12).Draw(t, "moves") {
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
			w.answer(s)
		case 3:
			require.NoError(t, s.read(wire.Journal, 3))
		}
	}
}

// answer hands the leader its next confirm, which may end its epoch.
func (w *world) answer(s *modelSidecar) {
	err := s.answer(w.now)
	if errors.Is(err, errUnsure) {
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
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms")) * time.Millisecond)
}

// lingers is for how long low water does in the model.
const lingers = 6 * time.Second

// carry has the leader append again what is pending, so that low water can be moved.
func (w *world) carry(t *rapid.T) {
	if s := w.leader(); s != nil {
		require.NoError(t, s.core.beginCarry(lingers))
	}
}

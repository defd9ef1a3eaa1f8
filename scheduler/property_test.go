package scheduler

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func mapKeys[K cmp.Ordered, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// world is one run of the property test.
type world struct {
	t          *rapid.T
	broker     *modelBroker
	sidecars   []*modelSidecar
	now        time.Time
	latest     time.Time // that it was before the clock was set
	appended   map[place]*appendedEntry
	operations map[string]bool // that were accepted
	deleted    map[place]int   // answered deleted; with how many copies there were by then
	pauses     map[string]*pauseAsked
	keys       map[string]*keyAsked
	jids       int
	commands   int

	journalLost bool
	truncated   bool           // something was lost of the past: a view made anew does not know all of it
	asked       map[place]bool // what somebody may have deleted or killed
	undos       map[place]int  // how often somebody asked for it back
	holes       []hole
	late        bool // the journal has a late record of a leader that was followed
}

type appendedEntry struct {
	jid   string
	raw   string
	dead  bool
	asked int
	dues  map[int]time.Time // when it may fire, by when that was asked for
}

// atLeast raises one of rapid's numbers, unless the command line says otherwise.
func atLeast(t *testing.T, name, n string) {
	t.Helper()
	if f := flag.Lookup(name); f.Value.String() == f.DefValue {
		require.NoError(t, flag.Set(name, n))
		t.Cleanup(func() { require.NoError(t, flag.Set(name, f.DefValue)) })
	}
}

// TestNothingIsLostOrDoubled drives leaders and views through whatever may happen.
func TestNothingIsLostOrDoubled(t *testing.T) {
	atLeast(t, "rapid.checks", "400")
	atLeast(t, "rapid.steps", "60")
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		t.Repeat(map[string]func(*rapid.T){
			"append":           w.append,
			"append2":          w.append,
			"read":             w.read,
			"read2":            w.read,
			"elect":            w.elect,
			"lead":             w.lead,
			"lead2":            w.lead,
			"lead3":            w.lead,
			"run":              w.run,
			"command":          w.command,
			"change":           w.change,
			"undo":             w.undo,
			"regret":           w.regret,
			"overtake":         w.overtake,
			"operate":          w.operate,
			"cancel":           w.cancelOne,
			"pause":            w.pause,
			"enqueue":          w.enqueue,
			"enqueue2":         w.enqueue,
			"time":             w.pass,
			"clock":            w.setClock,
			"disconnect":       w.disconnect,
			"killSidecar":      w.killSidecar,
			"forget":           w.forget,
			"killBroker":       w.killBroker,
			"killQueue":        w.killQueue,
			"refuse":           w.refuse,
			"refuseRecords":    w.refuseRecords,
			"recreate":         w.recreate,
			"lateRecord":       w.lateRecord,
			"carry":            w.carry,
			"carryRefused":     w.carryRefused,
			"takeoverRefused":  w.takeoverRefused,
			"recreatedRefused": w.recreatedRefused,
			"retention":        w.retention,
			"loseJournal":      w.loseJournal,
			"forgetJournal":    w.forgetJournal,
			"endHold":          w.endHold,
			"cutWay":           w.cutWay,
			"begunLate":        w.beginLate,
			"forgedRecords":    w.forge,
		})
		w.quiesce()
		w.check()
	})
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, broker: newModelBroker(), now: time.Unix(1_800_000_000, 0), appended: map[place]*appendedEntry{}, deleted: map[place]int{},
		asked: map[place]bool{}, undos: map[place]int{}, operations: map[string]bool{}, pauses: map[string]*pauseAsked{}, keys: map[string]*keyAsked{}}
	w.broker.onCopy = w.fired
	for i := range 2 {
		s, err := newModelSidecar(w.broker, fmt.Sprintf("s%d", i))
		require.NoError(t, err)
		w.sidecars = append(w.sidecars, s)
	}
	require.NoError(t, w.sidecars[0].elect(w.refuses))
	for range 5 {
		w.round()
	}
	return w
}

func (w *world) close() {
	for _, s := range w.sidecars {
		_ = s.store.Close()
	}
}

func (w *world) pick(t *rapid.T) *modelSidecar {
	return w.sidecars[rapid.IntRange(0, len(w.sidecars)-1).Draw(t, "sidecar")]
}

func (w *world) leader() *modelSidecar {
	for _, s := range w.sidecars {
		if s.core != nil {
			return s
		}
	}
	return nil
}

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
	stream := rapid.SampledFrom(append([]string{wire.Journal}, wire.EntryStreams...)).Draw(t, "stream")
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

func (w *world) places() []place {
	return slices.SortedFunc(mapsKeys(w.appended), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.generation, b.generation), cmp.Compare(a.offset, b.offset))
	})
}

func (w *world) command(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || len(w.appended) == 0 {
		return
	}
	p := rapid.SampledFrom(w.places()).Draw(t, "entry")
	if rapid.Bool().Draw(t, "a pending one") {
		if at, e, _ := w.pending(t, s); e != nil {
			p = at
		}
	}
	w.commandOn(t, s, p)
}

func (w *world) commandOn(t *rapid.T, s *modelSidecar, p place) {
	if p.generation != w.broker.streams[p.stream].generation {
		return
	}
	offset := p.offset
	found, err := s.entries.Find(p.stream, w.appended[p].jid)
	require.NoError(t, err)
	for _, e := range found {
		if w.broker.place(p.stream, e.Offset) == p {
			offset = e.Offset
		}
	}
	what := rapid.SampledFrom([]string{wire.CommandDelete, wire.CommandTrigger, wire.CommandRetry, wire.CommandKill}).Draw(t, "command")
	w.send(t, s, what, p, offset)
}

// send has the leader carry out a command, if it can be.
func (w *world) send(t *rapid.T, s *modelSidecar, what string, p place, offset int64) {
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: what, Stream: p.stream, JID: w.appended[p].jid, Offset: &offset}
	body, err := json.Marshal(cmd)
	require.NoError(t, err)
	if _, err := wire.ParseCommand(body); err != nil {
		return // not for this stream
	}
	w.asked[p] = w.asked[p] || what == wire.CommandDelete || what == wire.CommandKill
	if s.entries.IsHeld(p.stream, offset) {
		w.broker.unsafe[p] = "somebody asked for it while it was held"
	}
	undos := w.undos[p]
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		if r.Status == wire.StatusDone && what == wire.CommandDelete && w.undos[p] == undos {
			if _, before := w.deleted[p]; !before {
				w.deleted[p] = w.copiesOf(p)
			}
		}
	}))
}

func mapsKeys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

func (w *world) pass(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms")) * time.Millisecond)
}

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

// dieInFlight has the broker take in some of what a dying connection had sent, and notes what its leader can never know.
func (w *world) dieInFlight(t *rapid.T, s *modelSidecar) {
	for range rapid.IntRange(0, len(s.conn.out)).Draw(t, "still processed") {
		w.broker.process(s.conn, w.now)
	}
	w.broker.confirm(s.conn)
	for _, c := range w.broker.copies {
		if w.refuses(c.queue) && !c.gone { // it may have been refused: fired again, rather than lost
			w.broker.unsafe[w.broker.place(c.deed.Stream, c.deed.Offset)] = "its queue may refuse, and the leader died"
			w.broker.unsafeTags[c.deed.JIDTag] = true
		}
	}
}

// killBroker loses what was not confirmed, and every connection.
func (w *world) killBroker(t *rapid.T) {
	var c *modelConn
	s := w.leader()
	if s != nil {
		c = s.conn
	}
	for _, p := range w.broker.openDeeds(c) {
		w.broker.unsafe[p] = "the broker died with the fire unconfirmed"
	}
	if s != nil {
		for range rapid.IntRange(0, len(s.conn.out)).Draw(t, "still processed") {
			w.broker.process(s.conn, w.now)
		}
		s.disconnect()
	}
	for _, c := range w.broker.copies {
		if !c.confirmed && rapid.Bool().Draw(t, "lost") {
			c.gone = true
		}
		c.confirmed = true
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
			a.copy.confirmed = true
			if !w.refuses(queue) {
				w.broker.unsafeTags[a.copy.deed.JIDTag] = true
				// If the leader dies before it reads this, nobody can know: the one stated exception.
				w.broker.gone[w.broker.place(a.copy.deed.Stream, a.copy.deed.Offset)] = "its queue died alone, and the leader too"
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
	w.broker.loseRepeated(stream)
	w.broker.streams[stream] = &modelStream{generation: old.generation + 1}
	w.broker.unnoticed = true
}

// lateRecord is the last word of a leader that has been followed: it must not count.
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
	if stream := rapid.SampledFrom(append([]string{wire.Journal}, wire.EntryStreams...)).Draw(t, "stream"); stream != wire.Journal {
		w.lateBarrier(stream, old)
		return
	}
	for _, p := range w.places() {
		e := w.appended[p]
		if p.generation != w.broker.streams[p.stream].generation {
			continue
		}
		r := wire.JournalRecord{Type: wire.TypeDeleted, Epoch: old, Stream: p.stream, Offset: p.offset, JID: wire.JIDTag(e.jid)}
		w.broker.append(wire.Journal, millrace, r.Append(wire.Journal, 1_000_000, 1_000_000))
		w.late = true
		break
	}
}

// lateBarrier is a barrier of a leader that had been followed, behind that of the one that followed.
func (w *world) lateBarrier(stream string, epoch int64) {
	for at, r := range w.broker.streams[stream].records { // its leader had read none of those
		if j, err := wire.ParseJournal(r.Body); err == nil && r.UserID == millrace && j.Type == wire.TypeBarrier && j.Epoch > epoch {
			read := int64(w.broker.streams[stream].base+at) - 1
			w.broker.append(stream, millrace, wire.JournalRecord{Type: wire.TypeBarrier, Epoch: epoch, Read: &read}.Append(stream, 0, 0))
			return
		}
	}
}

// carry has the leader append again what is pending, so that low water can be moved.
func (w *world) carry(t *rapid.T) {
	if s := w.leader(); s != nil {
		require.NoError(t, s.core.beginCarry())
	}
}

// retention takes what low water allows it to take, and may overtake readers.
func (w *world) retention(t *rapid.T) {
	overtakes := rapid.Bool().Draw(t, "overtakes")
	for _, name := range slices.Sorted(maps.Keys(w.broker.streams)) {
		stream := w.broker.streams[name]
		below := min(stream.spent, stream.end())
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
			w.truncated = true
		}
	}
}

// loseJournal deletes the journal; whoever leads stops. Where an entry stream was made anew too before any leader has seen the one or the
// other, what stands in the new stream may be taken for settled: a stated exception.
func (w *world) loseJournal(t *rapid.T) {
	if w.broker.unnoticed || rapid.IntRange(0, 3).Draw(t, "rarely") != 0 {
		return
	}
	w.stopLeader(t)
	old := w.broker.streams[wire.Journal]
	w.broker.streams[wire.Journal] = &modelStream{generation: old.generation + 1}
	w.late, w.broker.frozen = false, nil
}

// stopLeader ends the leader's connection where something goes that it was reading, and notes whose fires nobody can tell of any more.
func (w *world) stopLeader(t *rapid.T) {
	s := w.leader()
	if s != nil {
		w.dieInFlight(t, s)
		s.disconnect()
	}
	open := w.broker.openDeeds(nil)
	for _, s := range w.sidecars { // who had not read yet that they were confirmed never will
		doubts, err := s.entries.Doubtful()
		require.NoError(t, err)
		for _, d := range doubts {
			open = append(open, w.broker.first(place{d.Place.Stream, s.gen[d.Place.Stream], d.Place.Offset}))
		}
	}
	for _, p := range open {
		w.broker.unsafe[p] = "the journal was lost with the fire unconfirmed"
	}
	w.broker.forgetStrays()
	w.truncated, w.broker.unnoticed, w.journalLost = true, true, true
}

// forgetJournal has the journal forget what is still needed, as an operator's limit may. Where it forgets by whom a leader was followed,
// nobody can tell that leader's last words from its others.
func (w *world) forgetJournal(t *rapid.T) {
	if w.late || w.broker.unnoticed || rapid.IntRange(0, 3).Draw(t, "rarely") != 0 {
		return
	}
	w.stopLeader(t)
	stream := w.broker.streams[wire.Journal]
	if n := rapid.IntRange(0, len(stream.records)).Draw(t, "records"); n > 0 && n < len(stream.records) {
		stream.records, stream.base = stream.records[n:], stream.base+n
	}
}

// endHold is an operator who decides what becomes of what is held. Of what is released nobody knows whether it had been done.
func (w *world) endHold(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || len(s.entries.State().Held) == 0 {
		return
	}
	discard := rapid.Bool().Draw(t, "discard")
	for p, e := range w.appended {
		if p.generation != w.broker.streams[p.stream].generation && !w.broker.repeated[p] {
			continue
		}
		for _, f := range w.found(s, p.stream, e.jid) {
			if s.entries.IsHeld(f.Stream, f.Offset) {
				w.broker.unsafe[p] = "it was released"
				w.asked[p] = w.asked[p] || discard
				delete(w.deleted, p)
			}
		}
	}
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("h%d", w.commands), Command: wire.CommandRelease}
	if discard {
		cmd.Command = wire.CommandDiscard
	}
	require.NoError(t, s.core.command(w.now, cmd, func(wire.Reply) {}))
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

// quiesce heals everything and lets the system come to rest.
func (w *world) quiesce() {
	clear(w.broker.full)
	w.now = later(w.now, w.latest)
	for i := range 400 {
		if w.leader() == nil {
			require.NoError(w.t, w.sidecars[i%2].elect(w.refuses))
		}
		w.now = w.now.Add(500 * time.Millisecond)
		w.round()
		w.endHold(w.t)
		s := w.leader()
		if i == 100 && s != nil && s.core.phase != phaseLeading { // as leadership.checkStuck does: it had been behind a journal that was lost
			s.disconnect()
			continue
		}
		if i >= 150 && i%50 == 0 && s != nil { // after that a view made anew lacks nothing that the journal has forgotten
			require.NoError(w.t, s.core.beginCarry())
		}
		if i > 150 && s != nil && s.core.phase == phaseLeading && len(s.core.flight)+len(s.core.busy)+len(s.core.again) == 0 && s.core.carry == nil && s.core.allProven() {
			if doubts, err := s.entries.Doubtful(); err == nil && len(doubts) == 0 {
				break
			}
		}
	}
	for _, s := range w.sidecars {
		require.NoError(w.t, s.readAll())
		if len(s.recreated()) > 0 { // no leader could notice, and none has to: the view is built anew
			require.NoError(w.t, s.forget())
			require.NoError(w.t, s.readAll())
		}
	}
}

func (w *world) copiesOf(p place) (n int) {
	for _, c := range w.broker.copies {
		if w.placeOf(c) == p && !c.gone {
			n++
		}
	}
	return n
}

// placeOf is the entry that a copy was fired from: its stream may have been made anew since.
func (w *world) placeOf(c *copyOf) place {
	for g := w.broker.streams[c.deed.Stream].generation; g >= 0; g-- {
		p := w.broker.first(place{c.deed.Stream, g, c.deed.Offset})
		if e := w.appended[p]; e != nil && wire.JIDTag(e.jid) == c.deed.JIDTag {
			return p
		}
	}
	return place{c.deed.Stream, -1, c.deed.Offset}
}

func (w *world) check() {
	s := w.leader()
	require.NotNil(w.t, s, "nobody leads")
	require.Equal(w.t, phaseLeading, s.core.phase)
	doubts, err := s.entries.Doubtful()
	require.NoError(w.t, err)
	for _, d := range doubts {
		require.Equal(w.t, s.core.epoch, d.Epoch, "a leader has not settled what an earlier epoch left: %v", d.Place)
	}
	w.checkCopies(s)
	w.checkKilledOrFired(s)
	w.checkOperations(s)
	w.checkPauses(s)
	w.checkKeys(s)
	require.LessOrEqual(w.t, s.entries.Total(wire.DeadJobs), int64(deadMax), "too many dead jobs are kept")
	untold, err := s.entries.Announced()
	require.NoError(w.t, err)
	require.Empty(w.t, untold, "the journal does not tell of every change")
	w.checkViews()
}

// checkCopies counts what became of each job.
func (w *world) checkCopies(s *modelSidecar) {
	require.Empty(w.t, w.broker.broken)
	byJID := map[string]int{}
	for p, e := range w.appended {
		n := w.copiesOf(p)
		byJID[e.jid] += n
		if before, deleted := w.deleted[p]; deleted {
			require.Equal(w.t, before, n, "%v was fired after it was answered deleted", p)
		}
	}
	for p, e := range w.appended {
		if p.generation != w.broker.streams[p.stream].generation {
			continue
		}
		n := byJID[e.jid]
		_, doubled := w.broker.unsafe[p]
		if n > 1 && !doubled && !w.sharedDoubt(e.jid) {
			require.LessOrEqual(w.t, n, w.publishes(e.jid), "%v (%s) was fired %d times", p, e.jid, n)
		}
		if n == 0 && !w.mayBeGone(e.jid) {
			require.True(w.t, w.accounted(s, p, e), "%v (%s) is lost", p, e.jid)
		}
	}
}

// mayBeGone tells whether an entry with a jid may be lost; others with the jid may have been taken for repetitions of it.
func (w *world) mayBeGone(jid string) bool {
	for p, e := range w.appended {
		if e.jid == jid && w.broker.gone[p] != "" {
			return true
		}
	}
	return false
}

// publishes is how often a jid may come: a repeat that came after the first had fired is a job of its own.
func (w *world) publishes(jid string) (n int) {
	for _, e := range w.appended {
		if e.jid == jid {
			n++
		}
	}
	return n
}

func (w *world) sharedDoubt(jid string) bool {
	for p, e := range w.appended {
		if _, doubled := w.broker.unsafe[p]; e.jid == jid && doubled {
			return true
		}
	}
	return false
}

// accounted tells whether an entry that was not fired is where it should be.
func (w *world) accounted(s *modelSidecar, p place, e *appendedEntry) bool {
	if _, deleted := w.deleted[p]; deleted || w.filled(p) {
		return true
	}
	pending, err := s.entries.Find(p.stream, e.jid)
	require.NoError(w.t, err)
	if e.dead && (len(pending) > 0 || w.broker.trimmed[wire.JIDTag(e.jid)]) {
		return true // a dead job waits for a person, unless there are too many
	}
	happened, err := s.entries.Happened(p.stream, e.jid)
	require.NoError(w.t, err)
	if happened == nil {
		return w.truncated && w.asked[p]
	}
	switch happened.What {
	case wire.TypeDeleted: // asked for, and unanswered, or one of many
		return true
	case wire.TypeChanged, wire.TypeUndone, wire.TypeKilled, wire.OpBuried:
		if e.dead {
			return false
		}
		if happened.What == wire.TypeChanged || happened.What == wire.TypeUndone {
			return len(pending) > 0 // not due yet
		}
		dead, err := s.entries.Find(wire.DeadJobs, e.jid)
		require.NoError(w.t, err)
		gone, err := s.entries.Happened(wire.DeadJobs, e.jid)
		require.NoError(w.t, err)
		return len(dead) > 0 || gone != nil || w.broker.trimmed[wire.JIDTag(e.jid)] || w.broker.streams[wire.DeadJobs].generation > 0
	}
	return false
}

// checkViews compares the views with each other, and with one that is made anew.
func (w *world) checkViews() {
	fresh, err := newModelSidecar(w.broker, "fresh")
	require.NoError(w.t, err)
	defer func() { _ = fresh.store.Close() }()
	require.NoError(w.t, fresh.readAll())
	state := fresh.entries.State()
	require.Empty(w.t, state.Gap(0), "a view made anew believes that the journal has a gap")
	tables := "elfjwdcaxosi"
	if w.journalLost { // what a person had asked for stood there, and each view knows it as far as it had read
		tables = "elfjwdcxs"
	}
	want := dump(w.t, fresh.store, w.truncated, tables)
	for _, s := range w.sidecars {
		require.Equal(w.t, want, dump(w.t, s.store, w.truncated, tables), "the view of %s differs from one made anew", s.name)
	}
}

// dump is all that a fold wrote; only about entries, if the past is not fully known any more.
func dump(t *rapid.T, store *view.Store, entriesOnly bool, tables string) map[string]string {
	all := map[string]string{}
	require.NoError(t, store.Scan([]byte{1}, []byte{255}, false, func(k, v []byte) bool {
		if !entriesOnly || slices.Contains([]byte(tables), k[0]) {
			all[fmt.Sprintf("%q", k)] = fmt.Sprintf("%q", v)
		}
		return true
	}))
	return all
}

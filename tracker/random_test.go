package tracker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
	"github.com/millrace-jobs/millrace/wire"
)

// author writes a history as clients and leaders would. A leader has read all streams, and follows
// the rules.
type author struct {
	*history
	t       *rapid.T
	view    *reading
	flight  []flying // fires and burials of this epoch that are not confirmed yet
	dead    []int64  // epochs that ended
	rejects []wire.Record
	late    int64 // the newest number of the fenced leaders
}

type flying struct {
	seq     int64
	stored  *Stored
	command string
	burial  bool
}

func (a *author) draw(n int, what string) int { return rapid.IntRange(0, n-1).Draw(a.t, what) }

func (a *author) jid() string {
	return string("abcdu"[a.draw(5, "jid")]) + fmt.Sprint(a.draw(3, "jid"))
}

// pending draws a pending entry.
func (a *author) pending(streams ...string) *Stored {
	var all []*Stored
	for _, stream := range streams {
		require.NoError(a.t, a.view.List(stream, Cursor{}, func(r Row) bool {
			s, err := a.view.Get(stream, r.Offset)
			require.NoError(a.t, err)
			all = append(all, s)
			return true
		}))
	}
	if len(all) == 0 {
		return nil
	}
	return all[a.draw(len(all), "which")]
}

// about is a record about an entry.
func about(kind string, s *Stored) wire.JournalRecord {
	return wire.JournalRecord{Type: kind, Stream: s.Stream, Offset: s.Offset, JID: wire.JIDTag(s.JID), Error: "odd"}
}

func (a *author) client() {
	stream := wire.EntryStreams[a.draw(4, "stream")]
	if len(a.slots) > 0 && a.draw(4, "ends") == 0 {
		a.end(wire.TypeEnded, rapid.SliceOfN(rapid.SampledFrom(a.slots), 1, 4).Draw(a.t, "slots")...)
		return
	}
	switch a.draw(9, "by a client") {
	case 0:
		a.append(stream, client, nil, rapid.SampledFrom([]string{"", "{}", "[", body(dead, "x", 1)}).Draw(a.t, "garbage"))
		a.reject()
	case 1:
		a.append(wire.Journal, client, nil, `{"type":"low-water","low_water":{"scheduled_jobs":99}}`)
		a.reject()
	case 2:
		a.append(wire.Heartbeats, client, nil, "garbage")
		a.reject()
	case 3:
		a.end(wire.TypeEnded, append(slices.Clone(a.slots), "no slot")...)
		a.reject()
	case 4:
		a.hole(stream, int64(a.draw(3, "hole")))
	default:
		a.entry(stream, a.jid(), a.draw(5, "at"))
	}
}

func (a *author) reject() { a.rejects = append(a.rejects, a.all[len(a.all)-1]) }

func (a *author) leader() {
	if a.epoch < 0 || a.draw(12, "dies") == 0 {
		a.lead()
		return
	}
	switch a.draw(20, "by the leader") {
	case 18, 19:
		a.decides()
	case 0:
		if len(a.flight) > 0 {
			n := 1 + a.draw(len(a.flight), "confirmed")
			a.confirm(a.flight[n-1].seq)
		}
	case 1:
		a.sendBack()
	case 2, 3:
		if s := a.pending(sched, retry, gated); s != nil {
			a.fires(rapid.SampledFrom([]string{wire.OpFired, wire.OpTriggered, wire.OpExpired, wire.OpBuried}).Draw(a.t, "op"), s)
		}
	case 4:
		if s := a.pending(dead); s != nil {
			a.fires(wire.OpRetried, s)
		}
	case 5:
		if s := a.pending(wire.EntryStreams...); s != nil {
			kinds := []string{wire.TypeDuplicate, wire.TypeDeleted, wire.TypeExpired}
			a.record(about(rapid.SampledFrom(kinds).Draw(a.t, "kind"), s))
		}
	case 6:
		if s := a.pending(sched, retry, gated); s != nil {
			a.record(about(wire.TypeRefused, s))
		}
	case 7, 8:
		if s := a.pending(wire.EntryStreams...); s != nil {
			a.replace(s.Stream, s.Offset, s.JID, int(s.At.Unix()))
		}
	case 9:
		a.lowWater()
	case 10:
		if s := a.pending(dead); s != nil {
			a.record(wire.JournalRecord{Type: wire.TypeTrimmed, Stream: dead, Entries: []wire.Trimmed{{Offset: s.Offset, JID: wire.JIDTag(s.JID)}}})
		}
	case 11:
		a.dismiss()
	case 12:
		a.lateWriter()
	case 13:
		a.recreateStream()
	case 15:
		if len(a.slots) > 0 {
			a.end(wire.TypeClaimed, rapid.SampledFrom(a.slots).Draw(a.t, "slot"))
		}
	case 16:
		a.freeSlot()
	case 17:
		a.governs()
	case 14:
		if s := a.pending(sched, retry, gated); s != nil {
			a.changes(s)
		}
	}
}

// changes is a leader that changes an entry. The change is journaled once, twice, or not at all.
func (a *author) changes(s *Stored) {
	change := a.change(s.Stream, s.Offset, s.JID, a.draw(9, "at"))
	if a.draw(4, "not journaled") > 0 {
		a.journal(change)
	}
	if a.draw(4, "journaled again") == 0 {
		a.journal(change)
	}
}

func (a *author) fires(op string, s *Stored) {
	command := rapid.SampledFrom([]string{"", "x", "y"}).Draw(a.t, "command")
	seq := a.dispatch(op, s.Stream, s.Offset, s.JID, func(d *wire.Dispatch) { d.Command = command })
	a.flight = append(a.flight, flying{seq, s, command, wire.Dispatch{Op: op}.Burial()})
	if !a.flight[len(a.flight)-1].burial && a.draw(4, "copy") == 0 {
		a.bounce(seq, s)
	}
}

// confirm journals that all fires up to a number were confirmed.
func (a *author) confirm(through int64) {
	a.through = through
	for len(a.flight) > 0 && a.flight[0].seq <= through {
		if f := a.flight[0]; f.burial && rapid.Bool().Draw(a.t, "killed") {
			a.record(about(wire.TypeKilled, f.stored))
		}
		a.flight = a.flight[1:]
	}
	a.confirmed(through)
}

// sendBack journals that a queue refused a fire.
func (a *author) sendBack() {
	for i, f := range a.flight {
		if !f.burial {
			a.takeBack(f.seq, f.stored.Stream, f.stored.Offset, f.stored.JID, f.command)
			a.flight = append(a.flight[:i:i], a.flight[i+1:]...)
			return
		}
	}
}

// lead begins an epoch, and settles all doubts of earlier ones or some of them.
func (a *author) lead() {
	if a.epoch >= 0 {
		a.dead = append(a.dead, a.epoch)
	}
	state := a.view.State()
	known := &wire.Confirmed{Epoch: a.epoch, Through: a.through}
	if len(a.flight) > 0 && rapid.Bool().Draw(a.t, "knows more") {
		known.Through = a.flight[0].seq
	}
	a.open(func(r *wire.JournalRecord) {
		r.LowWater, r.Needs = state.LowWater, state.Needs
		if a.draw(2, "the same process") == 0 {
			r.KnownConfirmed = known
		}
	})
	a.flight = nil
	a.view.finish()
	open, err := a.view.Doubts()
	require.NoError(a.t, err)
	for _, d := range open {
		a.settle(d)
		if a.draw(10, "dies while settling") == 0 {
			return
		}
	}
}

func (a *author) settle(d Doubt) {
	r := wire.JournalRecord{Type: wire.TypeDelivered, Stream: d.ID.Stream, Offset: d.ID.Offset, JID: d.JID, FiredEpoch: d.Epoch, Seq: d.Seq}
	switch {
	case !(wire.Dispatch{Op: d.Op}).Burial() && d.Entry != nil && rapid.Bool().Draw(a.t, "refire"):
		a.fires(wire.OpRefired, d.Entry)
	case !(wire.Dispatch{Op: d.Op}).Burial() && d.Entry != nil && a.draw(8, "park") == 0:
		a.record(about(wire.TypeRefused, d.Entry))
	default:
		a.record(r)
	}
}

// lowWater moves low water to the first entry that is still open.
func (a *author) lowWater() {
	water := map[string]int64{}
	for _, stream := range wire.EntryStreams {
		water[stream] = a.streams[stream]
		kept, err := a.view.Kept(stream, 0, a.streams[stream], 1)
		require.NoError(a.t, err)
		if len(kept) > 0 {
			water[stream] = kept[0].Offset
		}
	}
	a.record(wire.JournalRecord{Type: wire.TypeLowWater, LowWater: water, Needs: 0})
}

// freeSlot is a leader that frees a slot whose job no worker reports.
func (a *author) freeSlot() {
	var all []wire.HeldSlot
	require.NoError(a.t, a.view.Slots.Held(func(h *wire.HeldSlot) bool {
		all = append(all, *h)
		return true
	}))
	if len(all) > 0 {
		a.record(wire.JournalRecord{Type: wire.TypeFreed, Slots: all[:1+a.draw(len(all), "freed")]})
	}
}

// governs is a leader that begins or ends that a queue is governed, or says what became of that.
func (a *author) governs() {
	queue := string(rune('a' + a.draw(4, "queue")))
	q := a.view.Governed.GovernedQueue(queue)
	switch a.draw(3, "governs") {
	case 0:
		a.govern(queue, "")
	case 1:
		a.govern(queue, rapid.SampledFrom([]string{`{}`, `{"key":"class"}`, `{"key":"jid"}`}).Draw(a.t, "rule"))
	case 2:
		if q != nil {
			a.restate(queue, q.Turn, rapid.SampledFrom([]string{"", wire.QueueDraining, wire.QueueGoverned}).Draw(a.t, "state"))
		}
	}
}

func (a *author) dismiss() {
	if len(a.rejects) > 0 {
		r := a.rejects[a.draw(len(a.rejects), "reject")]
		a.record(wire.JournalRecord{Type: wire.TypeDismissed, Stream: r.Stream, Offset: r.Offset})
	}
}

// lateWriter is a fenced leader that does not know yet that another one follows.
func (a *author) lateWriter() {
	s := a.pending(wire.EntryStreams...)
	if len(a.dead) == 0 || s == nil {
		return
	}
	now, seq := a.epoch, a.seq
	a.late = max(a.late, seq, 1_000) // no leader uses a number twice
	a.seq = a.late
	a.epoch = a.dead[a.draw(len(a.dead), "which")]
	switch a.draw(4, "late") {
	case 0:
		a.fire(s.Stream, s.Offset, s.JID)
	case 1:
		a.dispatch(wire.OpBuried, s.Stream, s.Offset, s.JID)
	case 2:
		a.record(about(wire.TypeDeleted, s))
	case 3:
		a.replace(s.Stream, s.Offset, s.JID, 9)
	}
	a.epoch, a.seq, a.late = now, seq, a.seq
}

// recreateStream is an operator who deletes a stream. This ends the leader, and the next one
// journals that the stream was created again.
func (a *author) recreateStream() {
	stream := wire.EntryStreams[a.draw(4, "stream")]
	kept := a.rejects[:0:0]
	for _, r := range a.rejects {
		if r.Stream != stream {
			kept = append(kept, r)
		}
	}
	a.rejects = kept
	a.dead = append(a.dead, a.epoch)
	a.open()
	a.recreate(stream)
	a.flight = nil
	a.view.finish()
}

// For all records of clients and leaders, views that have read the same are equal, in each order of
// reading, and their tables agree.
func TestViewsOfSameRecordsAreEqual(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory()
		reference := newOne(t)
		defer reference.close()
		reference.t = rt
		a := &author{history: h, t: rt, view: reference.read(h, true)}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "by a client") {
				a.client()
			} else {
				a.leader()
			}
			a.view.finish()
		}
		requireSound(rt, reference)
		requireBytes(rt, h, reference)
		want := reference.dump()
		for i := range 3 {
			o := newOne(t)
			o.t = rt
			readInAnyOrder(o.read(h, i > 0), rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 0)), i == 2)
			requireSound(rt, o)
			require.Empty(rt, cmp.Diff(want, o.dump()))
			o.close()
		}
	})
}

// readInAnyOrder reads the streams in any order, in batches of any size. Restarts are new processes
// on the same store.
func readInAnyOrder(r *reading, random *rand.Rand, restarts bool) {
	names := r.history.names()
	favourite := names[random.IntN(len(names))]
	for left := len(r.history.all); left > 0; left-- {
		stream := favourite
		if random.IntN(3) == 0 {
			stream = names[random.IntN(len(names))]
		}
		if !r.next(stream, 1+random.IntN(4)) || random.IntN(10) == 0 {
			favourite = names[random.IntN(len(names))]
		}
		if restarts && random.IntN(8) == 0 {
			r.restart()
		}
	}
	r.finish()
}

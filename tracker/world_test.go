package tracker

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	millrace = "millrace" // the trusted user
	client   = "client"
)

// one is a view whose records the test folds.
type one struct {
	*Entries
	t     require.TestingT
	store *view.Store
}

func newOne(t testing.TB) *one { return newOneWith(t, 1<<20) }

func newOneWith(t testing.TB, cache int64) *one {
	store, err := view.Open(view.Config{Cache: cache, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	o := &one{t: t, store: store}
	t.Cleanup(o.close)
	o.restart()
	return o
}

// close may be called before the test ends.
func (o *one) close() {
	if o.store != nil {
		require.NoError(o.t, o.store.Close())
		o.store = nil
	}
}

// restart continues with a new process on the same store.
func (o *one) restart() {
	var err error
	o.Entries, err = NewEntries(o.store, millrace)
	require.NoError(o.t, err)
}

// try folds records of one stream in a batch, and returns the streams that must be read again.
func (o *one) try(records ...wire.Record) (rewound []string, err error) {
	err = o.store.Apply(o.Entries, records[0].Stream, records, func() error { return nil }, func(names []string) { rewound = names })
	return rewound, err
}

func (o *one) fold(records ...wire.Record) []string {
	rewound, err := o.try(records...)
	require.NoError(o.t, err)
	return rewound
}

// dump returns everything that the fold wrote, by key.
func (o *one) dump() map[string]string {
	all := map[string]string{}
	require.NoError(o.t, o.store.Scan([]byte{1}, []byte{0xff}, false, func(k, v []byte) bool {
		all[fmt.Sprintf("%q", k)] = fmt.Sprintf("%q", v)
		return true
	}))
	return all
}

func (o *one) table(first byte) int {
	n := 0
	require.NoError(o.t, o.store.Scan([]byte{first}, table.After([]byte{first}), false, func(_, _ []byte) bool {
		n++
		return true
	}))
	return n
}

// scribble damages the values of a table.
func (o *one) scribble(first byte) (n int) {
	var keys [][]byte
	require.NoError(o.t, o.store.Scan([]byte{first}, table.After([]byte{first}), false, func(k, _ []byte) bool {
		keys = append(keys, append([]byte{}, k...))
		return true
	}))
	require.NoError(o.t, o.store.Update(func(tx *view.Tx) error {
		for _, k := range keys {
			if err := tx.Set(k, []byte{byte(inDoubt), 0xff}); err != nil {
				return err
			}
		}
		return nil
	}))
	return len(keys)
}

// pending lists a stream's pending entries as "offset:jid".
func (o *one) pending(stream string) []string {
	list := []string{}
	require.NoError(o.t, o.List(stream, Cursor{}, func(r Row) bool {
		list = append(list, fmt.Sprintf("%d:%s", r.Offset, r.JID))
		return true
	}))
	return list
}

// due lists the entries that may fire, for all queues.
func (o *one) due() []string {
	list := []string{}
	for _, q := range o.Queues() {
		require.NoError(o.t, o.Due(q, DueKey{}, func(k DueKey) bool {
			list = append(list, fmt.Sprintf("%s/%s:%d", q, k.Stream, k.Offset))
			return true
		}))
	}
	require.NoError(o.t, o.Groups(func(g wire.Group, _ DueKey) bool {
		require.NoError(o.t, o.DueInGroup(g, DueKey{}, func(k DueKey) bool {
			list = append(list, fmt.Sprintf("%s/%s:%d", g.Queue, k.Stream, k.Offset))
			return true
		}))
		return true
	}))
	return list
}

// held lists the slots that are held, as "stream:offset key fires".
func (o *one) held() []string {
	list := []string{}
	require.NoError(o.t, o.Slots.Held(func(h *wire.HeldSlot) bool {
		list = append(list, fmt.Sprintf("%s:%d %s %v", h.Stream, h.Offset, h.Key, h.Fires))
		return true
	}))
	return list
}

// listDoubts lists the fires in doubt, as "epoch/seq op stream:offset".
func (o *one) listDoubts() []string {
	list := []string{}
	all, err := o.Doubts()
	require.NoError(o.t, err)
	for _, d := range all {
		list = append(list, fmt.Sprintf("%d/%d %s %s:%d", d.Epoch, d.Seq, d.Op, d.ID.Stream, d.ID.Offset))
	}
	return list
}

func (o *one) rejected(stream string) []string {
	list := []string{}
	require.NoError(o.t, o.Rejects(stream, func(j Reject) bool {
		list = append(list, fmt.Sprintf("%d: %s", j.Offset, j.Reason))
		return true
	}))
	return list
}

// history is the content of the streams, in the order in which it was written.
type history struct {
	streams map[string]int64 // the next offset
	all     []wire.Record
	gens    []int          // of each record of all, the stream's generation
	gen     map[string]int // the newest
	epoch   int64
	seq     int64
	through int64    // the confirmed number that the next record has
	slots   []string // of all fires that limits count
}

func newHistory() *history {
	return &history{streams: map[string]int64{}, gen: map[string]int{}, epoch: -1}
}

func (h *history) append(stream, user string, headers map[string]any, body string) int64 {
	offset := h.streams[stream]
	h.streams[stream]++
	r := wire.Record{Stream: stream, Offset: offset, UserID: user, Headers: headers, Body: []byte(body)}
	if stream == wire.Gated {
		r.Time = time.Unix(1+offset, 0).UTC()
	}
	h.all = append(h.all, r)
	h.gens = append(h.gens, h.gen[stream])
	return offset
}

// recreate deletes a stream and creates it again. The leader journals this.
func (h *history) recreate(stream string) {
	h.gen[stream]++
	h.streams[stream] = 0
	h.barrier(stream, h.epoch)
	h.record(wire.JournalRecord{Type: wire.TypeRecreated, Stream: stream})
}

func (h *history) recreated() bool { return len(h.gen) > 0 }

// hole leaves the next n offsets of a stream without records.
func (h *history) hole(stream string, n int64) { h.streams[stream] += n }

func (h *history) message(m wire.Message) int64 {
	return h.append(m.Key, millrace, m.Headers, string(m.Body))
}

// jobOf returns a job. The jid is also its class, and its first letter is the queue. Jobs of the
// queue c are gated, those of the queue u are unique. Those of the queue d are delayed messages,
// whose exchange is the jid.
func jobOf(jid string) string {
	if jid[0] == 'c' {
		return fmt.Sprintf(`{"jid":%q,"class":%q,"queue":"c","args":[],"gate":{"key":%q}}`, jid, strings.ToUpper(jid), jid)
	}
	if jid[0] == 'u' {
		return uniqueJob(jid)
	}
	if jid[0] == 'd' {
		return fmt.Sprintf(`{"jid":%q,"class":%q,"queue":"d","args":[{"exchange":%q}]}`, jid, wire.MessageClass, jid)
	}
	return fmt.Sprintf(`{"jid":%q,"class":%q,"queue":%q,"args":[]}`, jid, strings.ToUpper(jid), jid[:1])
}

// body returns an entry's record.
func body(stream, jid string, at int) string {
	if stream == wire.Gated {
		return jobOf(jid)
	}
	member := map[string]string{wire.ScheduledJobs: "scheduled_at", wire.Retries: "retry_at", wire.DeadJobs: "died_at"}[stream]
	return fmt.Sprintf(`{"jid":%q,%q:%d,"job":%s}`, jid, member, at, jobOf(jid))
}

// entry appends an entry of a client.
func (h *history) entry(stream, jid string, at int) int64 {
	return h.append(stream, client, nil, body(stream, jid, at))
}

// open begins an epoch, with a barrier in every entry stream.
func (h *history) open(changes ...func(*wire.JournalRecord)) int64 {
	r := wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Identity: fmt.Sprintf("leader/%d", len(h.all))}
	for _, fn := range changes {
		fn(&r)
	}
	h.epoch, h.seq, h.through = h.message(r.Append(wire.Journal, 0, 0)), 0, 0
	for _, stream := range wire.EntryStreams {
		h.barrier(stream, h.epoch)
	}
	return h.epoch
}

func (h *history) barrier(stream string, epoch int64) int64 {
	return h.message(wire.JournalRecord{Type: wire.TypeBarrier, Epoch: epoch}.Append(stream, 0, 0))
}

// record appends a JSON record of this epoch, with its own number.
func (h *history) record(r wire.JournalRecord) int64 {
	h.seq++
	r.Epoch = h.epoch
	return h.message(r.Append(wire.Journal, h.seq, h.through))
}

// plain appends a JSON record without a number.
func (h *history) plain(r wire.JournalRecord) int64 {
	r.Epoch = h.epoch
	return h.message(r.Append(wire.Journal, 0, h.through))
}

func (h *history) confirmed(through int64) {
	h.through = max(h.through, through)
	h.plain(wire.JournalRecord{Type: wire.TypeConfirmed, Through: through})
}

// dispatch appends a fire, or a burial with its copy in the journal. It returns the number.
func (h *history) dispatch(op, stream string, offset int64, jid string, changes ...func(*wire.Dispatch)) int64 {
	h.seq++
	d := wire.Dispatch{Op: op, Stream: stream, Offset: offset, JIDTag: wire.JIDTag(jid), Epoch: h.epoch, Seq: h.seq, Confirmed: h.through}
	for _, fn := range changes {
		fn(&d)
	}
	if (jid[0] == 'c' || jid[0] == 'u' && jid[1] != '0') && !d.Burial() {
		d.Slot = wire.SlotOf(&d).String()
		h.slots = append(h.slots, d.Slot)
	}
	job := jobOf(jid)
	if d.Burial() {
		h.append(wire.DeadJobs, millrace, d.Headers(), string(wire.DeadJob(wire.DeadEnvelope{JID: jid}, []byte(job))))
	}
	h.append(wire.Journal, millrace, d.Headers(), job)
	return d.Seq
}

func (h *history) fire(stream string, offset int64, jid string) int64 {
	return h.dispatch(wire.OpFired, stream, offset, jid)
}

// bounce returns an unroutable fire as a copy.
func (h *history) bounce(seq int64, s *Stored) int64 {
	d := wire.Dispatch{Op: wire.OpFired, Stream: s.Stream, Offset: s.Offset, JIDTag: wire.JIDTag(s.JID), Epoch: h.epoch, Seq: seq}
	return h.append(gated, millrace, d.Headers(), body(gated, s.JID, 0))
}

// end appends what a worker or a leader says of fires that limits count.
func (h *history) end(what string, slots ...string) {
	e := wire.End{Type: what, Slots: slots}
	if len(slots) == 1 {
		e.Slot, e.Slots = slots[0], nil
	}
	user := client
	if what == wire.TypeClaimed {
		e.Epoch, user = h.epoch, millrace
	}
	m, _ := e.Message()
	h.append(wire.JobEnds, user, nil, string(m.Body))
}

// takeBack journals that a fire was returned.
func (h *history) takeBack(seq int64, stream string, offset int64, jid string, command ...string) {
	r := wire.JournalRecord{Type: wire.TypeReturned, Seq: seq, Stream: stream, Offset: offset, JID: wire.JIDTag(jid)}
	if len(command) > 0 {
		r.TookBack = command[0]
	}
	h.record(r)
}

// replace appends an entry that replaces an older one.
func (h *history) replace(stream string, old int64, jid string, at int) int64 {
	headers := map[string]any{wire.HeaderReplaces: old, wire.HeaderFirst: old, wire.HeaderEpoch: h.epoch}
	if jid[0] == 'u' {
		headers[wire.HeaderAdmitted] = wire.Admission{Due: time.Unix(int64(at), 0), First: 1}.String()
	}
	return h.append(stream, millrace, headers, body(stream, jid, at))
}

// change appends a replacement that a user asked for.
func (h *history) change(stream string, old int64, jid string, at int) wire.Announcement {
	a := wire.Announcement{What: wire.TypeChanged, Stream: stream, Replaces: old, JIDTag: jid, Command: "change"}
	a.Offset = h.append(stream, millrace, a.Headers(h.epoch), body(stream, jid, at))
	return a
}

// tick appends the job of a tick.
func (h *history) tick(n int) int64 {
	a := wire.Announcement{What: wire.TypeTicked, Key: wire.TickKey("p", int64(60*n), "")}
	return h.append(sched, millrace, a.Headers(h.epoch), body(sched, fmt.Sprintf("t%d", n), 60*n))
}

// journal journals the purpose of a replacement.
func (h *history) journal(a wire.Announcement) { h.record(a.Record()) }

// of returns the records of one generation of a stream, in their order.
func (h *history) of(stream string, gen int) (list []wire.Record) {
	for i, r := range h.all {
		if r.Stream == stream && h.gens[i] == gen {
			list = append(list, r)
		}
	}
	return list
}

// names returns the streams that have records.
func (h *history) names() (list []string) {
	for stream := range h.streams {
		list = append(list, stream)
	}
	slices.Sort(list)
	return list
}

// onlyBarriers reports whether a stream has no other records.
func (h *history) onlyBarriers(stream string) bool {
	for _, r := range h.all {
		if r.Stream == stream && !strings.HasPrefix(string(r.Body), `{"type":"barrier"`) {
			return false
		}
	}
	return true
}

// reading is a view that reads a history, each stream at its own pace.
type reading struct {
	*one
	history *history
	at      map[string]int // the number of records of the generation that were read
	gen     map[string]int
}

// read begins to read a history. A view that exists from the beginning reads the old generations of
// streams, another does not.
func (o *one) read(h *history, fromTheBeginning bool) *reading {
	r := &reading{o, h, map[string]int{}, map[string]int{}}
	if !fromTheBeginning {
		for stream, gen := range h.gen {
			r.gen[stream] = gen
		}
	}
	return r
}

// next folds up to n records of a stream in one batch, and reports whether there were any.
func (r *reading) next(stream string, n int) bool {
	list := r.history.of(stream, r.gen[stream])[r.at[stream]:]
	list = list[:min(n, len(list))]
	if len(list) == 0 {
		return false
	}
	r.at[stream] += len(list)
	for _, name := range r.fold(list...) {
		r.at[name], r.gen[name] = 0, r.history.gen[name]
	}
	return true
}

// finish reads the remaining records.
func (r *reading) finish() *reading {
	for more := true; more; {
		more = false
		for _, stream := range r.history.names() {
			more = r.next(stream, 1) || more
		}
	}
	return r
}

// inOrder folds a history in the order in which it was written. It reads no record of an old
// generation after the new one was created.
func (o *one) inOrder(h *history) *one {
	r := o.read(h, true)
	for i, record := range h.all {
		if h.gens[i] == r.gen[record.Stream] {
			r.next(record.Stream, 1)
		}
	}
	return r.finish().one
}

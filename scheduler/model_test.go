package scheduler

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// The model: a broker with streams and queues, sidecars with views that read at their own pace, and
// all faults that can occur between them. The property test drives it.

// Limits of the model's leaders for dead jobs.
const (
	deadMax = 6
	deadAge = 150 * time.Second
)

const millrace = "millrace" // the user that Millrace has on the model's broker

// modelStream is one stream. A stream that is created again starts at offset 0.
type modelStream struct {
	generation int
	base       int // records below it were taken by retention
	records    []wire.Record
	spent      int // low water has passed what is below it: retention may take it
	late       []span
}

// span is a barrier, and a late one after it.
type span struct{ barrier, late int }

// beforeLate is how far retention may go without taking the barrier before a late one and leaving
// the late one. Only the earlier barrier shows that the later one is late. This is a stated
// exception.
func (s *modelStream) beforeLate(below int) int {
	for _, l := range s.late {
		if l.barrier < below && below <= l.late {
			below = l.barrier
		}
	}
	return below
}

func (s *modelStream) end() int { return s.base + len(s.records) }

// get returns a record, or nil if retention took it.
func (s *modelStream) get(offset int64) *wire.Record {
	if int(offset) < s.base || int(offset) >= s.end() {
		return nil
	}
	return &s.records[int(offset)-s.base]
}

// copyOf is a job in a queue, or one that was there.
type copyOf struct {
	headers   wire.Dispatch
	queue     string
	class     string
	at        time.Time
	confirmed bool  // the broker has confirmed it: a crash does not take it
	gone      bool  // a crash took it, or it found no queue
	bounced   bool  // it found no queue, and came back as an entry
	record    int64 // where the journal has it, -1 until it does
	journal   int   // the generation of that journal: epochs begin again with each
	late      bool  // its leader had been followed when it came
	atWork
}

// sent is a publish on its way to the broker.
type sent struct {
	tag     uint64
	message wire.Message
	read    int64   // how far its leader had read the journal
	all     bool    // it lists all confirms that its leader knew
	copy    *copyOf // what a node without a majority made of it: see modelBroker.hold
}

// answer is a confirm on its way to the leader.
type answer struct {
	tag  uint64
	ack  bool
	copy *copyOf        // what the leader knows when it gets the answer
	ends map[string]int // of the streams when the broker had processed it
}

// modelBroker has no clock and loses nothing by itself.
type modelBroker struct {
	streams       map[string]*modelStream
	copies        []*copyOf
	full          map[string]bool        // queues that refuse what is published
	missing       map[string]bool        // queues that do not exist: a fire to them comes back as a record of jobs.gated
	away          map[string]bool        // those that cannot be created now
	back          map[wire.Through]bool  // fires that came back
	lostCopies    map[wire.Through]place // those of which jobs.gated has lost the copy
	bounces       int                    // how many fires without a queue a leader takes in with each step
	halves        int                    // so many fires that come back are still refused
	refusedCopies []place                // entries of fires that came back and were refused
	lateReturn    bool                   // a leader that had been followed said that a fire was refused
	deaf          int                    // so many records that are published only to streams are refused
	nacks         func(wire.Message) bool

	journalDown bool // a burial that is nacked is among the dead jobs, and not in the journal

	witness string // of this run; empty after a restart
	runs    int
	conn    *modelConn             // the one that holds the lock
	newest  int64                  // the epoch that was opened last
	led     int64                  // the newest of which a leader began to act
	known   map[wire.Through]int64 // fires that a leader knew to be confirmed, with the position in the journal that says so
	unsafe  map[place]string
	gone    map[place]string // entries that may be lost, with why
	notices [][]byte         // control messages that workers got
	onCopy  func(*copyOf)    // called for each job that reaches a queue

	onRecord func(*wire.JournalRecord)            // called for each record of the journal that counts
	onAnswer func(to wire.Delivery, r wire.Reply) // called for each answer to a publisher

	trimmed    map[string]bool // jids of dead jobs that were given up
	unsafeTags map[string]bool // jids of which a fire may have come twice, or not at all

	jids   map[place]string // of all entries that were ever appended
	origin map[place]place  // of entries that stand for older ones, the first of all
	frozen map[string]place // by stream, the end of what a leader held because of a gap
	broken []string         // what was fired though it was held

	cut      bool           // jobs.fire does not lead to the queues
	cutGated bool           // jobs.unrouted does not lead to jobs.gated
	muted    bool           // jobs.fire does not lead to the journal
	repeated map[place]bool // entries that stand for misrouted fires

	everCut bool // one of them was, once

	cutBury bool // jobs.bury does not lead to the dead jobs
	torn    bool // it is dying, and writes burials only to the journal
	ended   bool // it is dying, and the journal accepts nothing more

	window   int  // fires that a queue may have open
	cluster  bool // queues stand on several nodes, each with a witness
	nodes    int  // how often one of them has restarted
	links    int  // how often a link between two has broken and come back
	linkSeen int  // the same, by the newest figures that the broker reports

	changesAt map[int64]int // by epoch, nodes and links when it began to lead

	silent bool           // the management API does not answer
	blind  map[int64]bool // epochs that could not ask it, or about nothing
	bare   map[int64]bool // epochs whose fires have no witness

	leases bool // a leader that loses the lock sends nothing more when the next one begins

	sure map[string]int // by stream, up to where its publishers have confirms

	direct  map[string][]string // where jobs.direct leads, by queue, if a governor or a client has changed it
	plainIn map[string]int      // messages of queues that came without Millrace
	caught  map[string]bool     // governed queues of which a leader knows that the alternate exchange is gone

	unnoticed bool // a stream was created again, or the journal lost, and no leader has seen it yet
}

// place is an entry of one generation of a stream.
type place struct {
	stream     string
	generation int
	offset     int64
}

// modelConn is a leader's connection.
type modelConn struct {
	broker  *modelBroker
	next    uint64
	out     []sent         // not processed by the broker yet
	answers []answer       // not read by the leader yet
	arrived []int64        // probes, not seen by the leader yet
	bounced []wire.Message // fires that found no queue, not seen by the leader yet
	acked   []acked        // fires that the leader knows to be confirmed

	cut    bool   // its node has no majority
	held   []sent // what that node accepted meanwhile, and has not replicated
	leader *modelSidecar

	unpublishable func(wire.Message) bool // what amqp091-go would refuse to send
	dies          func() bool             // asked before each publish whether the connection has died
}

// acked is a fire that its leader knows to be confirmed, with all that was sent by then.
type acked struct {
	fire wire.Through
	sent uint64
}

// noteKnown notes what the journal can learn from a record: what its leader knew when it sent it.
func (b *modelBroker) noteKnown(c *modelConn, tag uint64) {
	c.acked = slices.DeleteFunc(c.acked, func(a acked) bool {
		if a.sent < tag {
			b.say(a.fire)
		}
		return a.sent < tag
	})
}

func newModelBroker() *modelBroker {
	b := &modelBroker{window: ledger.MaxOpen, bounces: math.MaxInt, newest: -1, blind: map[int64]bool{}, bare: map[int64]bool{}, known: map[wire.Through]int64{}, changesAt: map[int64]int{}, streams: map[string]*modelStream{}, full: map[string]bool{}, missing: map[string]bool{}, away: map[string]bool{}, back: map[wire.Through]bool{}, lostCopies: map[wire.Through]place{}, unsafe: map[place]string{}, gone: map[place]string{},
		jids: map[place]string{}, origin: map[place]place{}, unsafeTags: map[string]bool{}, trimmed: map[string]bool{}, repeated: map[place]bool{}, sure: map[string]int{}, direct: map[string][]string{}, plainIn: map[string]int{}, caught: map[string]bool{}, onCopy: func(*copyOf) {}, onRecord: func(*wire.JournalRecord) {}, onAnswer: func(wire.Delivery, wire.Reply) {}}
	for _, name := range append(slices.Clone(leaderStreams), wire.JobEnds) {
		b.streams[name] = &modelStream{}
	}
	return b
}

func (c *modelConn) Publish(m wire.Message) (uint64, error) {
	if c.dies != nil && c.dies() {
		return 0, fmt.Errorf("%w: the test says so", broker.ErrLost)
	}
	if c.unpublishable != nil && c.unpublishable(m) {
		return 0, fmt.Errorf("%w: the test says so", broker.ErrUnpublishable)
	}
	c.next++
	c.out = append(c.out, sent{tag: c.next, message: m, read: int64(c.leader.at[wire.Journal]), all: len(c.leader.core.ledger.Above()) <= ledger.MaxRanges})
	c.broker.watchLease(m)
	return c.next, nil
}

func (b *modelBroker) append(stream string, user string, m wire.Message) int64 {
	s := b.streams[stream]
	offset := int64(s.end())
	r := wire.Record{Stream: stream, Offset: offset, UserID: user, Headers: m.Headers, Body: m.Body}
	if stream == wire.Gated {
		r.Time, r.Exchange, r.Key, r.Priority = time.Unix(offset, 0), m.Exchange, m.Key, m.Priority
		r.ReplyTo, r.CorrelationID = m.ReplyTo, m.CorrelationID
	}
	s.records = append(s.records, r)
	if e, err := wire.EntryOf(&r); err == nil {
		b.jids[place{stream, s.generation, offset}] = e.JID
	}
	return offset
}

// place returns an entry of the current stream, by its first position.
func (b *modelBroker) place(stream string, offset int64) place {
	return b.first(place{stream, b.streams[stream].generation, offset})
}

// placeWith returns the newest entry at an offset that has a jid. Its stream may have been created
// again since.
func (b *modelBroker) placeWith(stream string, offset int64, jid string) place {
	for g := b.streams[stream].generation; g >= 0; g-- {
		if p := (place{stream, g, offset}); b.jids[p] == jid {
			return b.first(p)
		}
	}
	return b.place(stream, offset)
}

func (b *modelBroker) first(p place) place {
	if o, carried := b.origin[p]; carried {
		return o
	}
	return p
}

// ends returns the ends of the streams.
func (b *modelBroker) ends() map[string]int {
	all := map[string]int{}
	for name, stream := range b.streams {
		all[name] = stream.end()
	}
	return all
}

// process takes the next publish of a connection in.
func (b *modelBroker) process(c *modelConn, now time.Time) {
	answered := len(c.answers)
	b.processNext(c, now)
	if len(c.answers) > answered {
		c.answers[answered].ends = b.ends()
	}
}

func (b *modelBroker) processNext(c *modelConn, now time.Time) {
	if len(c.out) == 0 {
		return
	}
	next := c.out[0]
	c.out = c.out[1:]
	m := next.message
	if c.cut {
		b.hold(c, next)
		return
	}
	if b.ended {
		if m.Exchange == wire.ExchangeFire && !b.cut && !b.cutGated && b.missing[m.Key] {
			b.comeBack(m)
		}
		if m.Exchange == wire.ExchangeBury && !b.cutBury {
			b.append(wire.DeadJobs, millrace, m)
		}
		return
	}
	reply := answer{tag: next.tag, ack: true}
	if b.nacks != nil && b.nacks(m) {
		reply.ack = false
		switch {
		case m.Exchange == wire.ExchangeBury && b.journalDown:
			b.append(wire.DeadJobs, millrace, m)
		case m.Exchange == wire.ExchangeFire || m.Exchange == wire.ExchangeBury:
			b.append(wire.Journal, millrace, m)
		}
		c.answers = append(c.answers, reply)
		return
	}
	if next.all && (m.Exchange == wire.ExchangeFire && !b.muted || m.Exchange == wire.ExchangeBury || m.Key == wire.Journal && b.deaf == 0) {
		b.noteKnown(c, next.tag)
	}
	switch m.Exchange {
	case wire.ExchangeFire:
		record := int64(-1)
		if !b.muted {
			record = b.append(wire.Journal, millrace, m)
		}
		if next.copy != nil { // its queue had it already
			next.copy.record, next.copy.late, reply.copy = record, next.copy.headers.Epoch < b.newest, next.copy
			break
		}
		if b.cut {
			break
		}
		if p, ok := wire.ProbeOf(m.Headers); ok {
			c.arrived = append(c.arrived, p.Number)
			break
		}
		if b.full[m.Key] {
			reply.ack = false
			break
		}
		d, _ := wire.DispatchOf(m.Headers)
		b.excuseRefire(&d, next.read)
		if b.missing[m.Key] && b.cutGated {
			break
		}
		if b.missing[m.Key] {
			b.comeBack(m)
			c.bounce(m)
			b.copies = append(b.copies, &copyOf{headers: d, queue: m.Key, gone: true, bounced: true, confirmed: true, record: record, journal: b.streams[wire.Journal].generation})
			if b.halves > 0 {
				b.halves, reply.ack = b.halves-1, false
				b.refusedCopies = append(b.refusedCopies, b.placeWith(d.Stream, d.Offset, m.MessageID))
			}
			break
		}
		if end, held := b.frozen[d.Stream]; held && d.Op == wire.OpFired && end.generation == b.streams[d.Stream].generation && d.Offset < end.offset {
			b.broken = append(b.broken, fmt.Sprintf("%s@%d was fired though it was held", d.Stream, d.Offset))
		}
		reply.copy = b.deliver(d, m)
		reply.copy.record = record
	case wire.ExchangeBury:
		if !b.cutBury && !b.torn {
			b.append(wire.DeadJobs, millrace, m)
		}
		b.append(wire.Journal, millrace, m)
		b.excuseBurial(m, next.read)
	case wire.Control:
		b.notices = append(b.notices, m.Body)
	case wire.Unrouted:
		if !b.cutGated {
			b.append(wire.Gated, millrace, m)
		}
		c.bounce(m)
	default:
		reply.ack = b.store(m)
	}
	c.answers = append(c.answers, reply)
}

// store appends a message to a stream, and reports whether the broker confirms it.
func (b *modelBroker) store(m wire.Message) bool {
	if b.deaf > 0 {
		b.deaf--
		return false
	}
	if d, is := wire.DispatchOf(m.Headers); is && m.Key == wire.Gated { // a copy that was lost
		fire := wire.Through{Epoch: d.Epoch, Through: d.Seq}
		if _, lost := b.lostCopies[fire]; !lost {
			b.broken = append(b.broken, fmt.Sprintf("the copy of %v was published again, and was not lost", fire))
		}
		b.comeBack(m)
		delete(b.lostCopies, fire)
		return true
	}
	offset := b.append(m.Key, millrace, m)
	if replaced, ok := m.Headers[wire.HeaderReplaces].(int64); ok {
		here := place{m.Key, b.streams[m.Key].generation, offset}
		b.origin[here] = b.place(m.Key, replaced)
	}
	if from, ok := m.Headers[wire.HeaderStream].(string); ok { // it repeats a misrouted fire
		was := b.placeWith(from, wire.HeaderInt(m.Headers, wire.HeaderOffset), m.MessageID)
		here := place{m.Key, b.streams[m.Key].generation, offset}
		b.origin[here], b.repeated[was], b.repeated[here] = was, true, true
	}
	if j, err := wire.ParseJournal(m.Body); err == nil {
		b.note(m.Key, offset, &j)
	}
	return true
}

// unjournal removes the fire of a job in a queue from the journal, as if only its queue had got it.
// What its headers say of others stays.
func (b *modelBroker) unjournal(c *copyOf) {
	r := b.streams[wire.Journal].get(c.record)
	said := wire.JournalRecord{Type: wire.TypeConfirmed, Epoch: c.headers.Epoch, Through: c.headers.Confirmed}
	if text, says := r.Headers[wire.HeaderAbove].(string); says {
		said.Above, _ = wire.ParseRanges(text)
	}
	m := said.Append(wire.Journal, 0, c.headers.Confirmed)
	r.Headers, r.Body, c.record = m.Headers, m.Body, -1
}

// deliver puts a job into its queue.
func (b *modelBroker) deliver(d wire.Dispatch, m wire.Message) *copyOf {
	c := &copyOf{headers: d, queue: m.Key, class: m.Type, at: m.Timestamp, record: -1, journal: b.streams[wire.Journal].generation, late: d.Epoch < b.newest}
	b.copies = append(b.copies, c)
	b.onCopy(c)
	if c.late {
		b.excuseLate(&d)
	}
	return c
}

// excuseRefire notes that a fire may come twice: its leader, which had read so far, did not know of
// the first one, or nothing proves that the first one arrived.
func (b *modelBroker) excuseRefire(d *wire.Dispatch, read int64) {
	p := b.place(d.Stream, d.Offset)
	for _, c := range b.copies {
		if b.place(c.headers.Stream, c.headers.Offset) != p {
			continue
		}
		if why := b.excuse(c, d, read); why != "" {
			b.unsafe[p], b.unsafeTags[d.JIDTag] = why, true
		}
	}
}

func (b *modelBroker) excuse(first *copyOf, d *wire.Dispatch, read int64) string {
	fired := wire.Through{Epoch: first.headers.Epoch, Through: first.headers.Seq}
	changed := b.changesAt[fired.Epoch] != b.nodes+b.links
	switch {
	case fired.Epoch != d.Epoch && (first.record < 0 || first.record >= read):
		return "another leader had fired it, and this one could not know"
	case first.bounced:
		return ""
	case first.late && first.headers.Offset != d.Offset:
		return "its leader had been followed, and did not know which entry stands for this one"
	case d.Op != wire.OpRefired || b.isKnown(fired, read):
		return ""
	case b.bare[fired.Epoch] || b.anyBlind(fired.Epoch, d.Epoch):
		return "its leader died with the fire unconfirmed, and a leader could not ask whether it arrived"
	case first.late && b.cluster:
		return "its leader had been followed, and nothing proves that the fire arrived"
	case first.queue == quorum || first.queue == refusing || b.cluster && changed:
		return "its leader died with the fire unconfirmed, and nothing proves that it arrived"
	}
	return ""
}

// anyBlind reports whether a leader after an epoch, up to another one, could not ask the broker.
// Its own witness says nothing about earlier fires.
func (b *modelBroker) anyBlind(after, upTo int64) bool {
	for epoch, blind := range b.blind {
		if blind && after < epoch && epoch <= upTo {
			return true
		}
	}
	return false
}

// comeBack routes a fire that finds no queue.
func (b *modelBroker) comeBack(m wire.Message) {
	offset := b.append(wire.Gated, millrace, m)
	d, _ := wire.DispatchOf(m.Headers)
	b.back[wire.Through{Epoch: d.Epoch, Through: d.Seq}] = true
	b.origin[place{wire.Gated, b.streams[wire.Gated].generation, offset}] = b.placeWith(d.Stream, d.Offset, m.MessageID)
}

// note notes what a record of the journal allows.
func (b *modelBroker) note(stream string, offset int64, j *wire.JournalRecord) {
	switch {
	case j.Type == wire.TypeBarrier:
		b.streams[stream].noteBarrier(j, offset)
	case j.Type == wire.TypeOpened:
		b.newest = offset
	case j.Epoch < b.newest:
		b.lateReturn = b.lateReturn || j.Type == wire.TypeReturned
		return // void
	}
	b.onRecord(j)
	switch {
	case j.Type == wire.TypeDelivered:
		b.checkDelivered(wire.Through{Epoch: j.FiredEpoch, Through: j.Seq})
	case j.Type == wire.TypeWitness:
		b.led = j.Epoch
	case j.Type == wire.TypeLowWater:
		b.streams[wire.Journal].spent = int(j.Needs)
		for name, below := range j.LowWater {
			b.streams[name].spent = int(below)
		}
	case j.Type == wire.TypeTrimmed:
		for _, e := range j.Entries {
			b.trimmed[e.JID] = true
		}
	case j.Type == wire.TypeOpened && j.Held[wire.Retries] == wire.Everything:
		b.frozen = map[string]place{}
		for _, name := range wire.EntryStreams {
			b.frozen[name] = place{name, b.streams[name].generation, int64(b.streams[name].end())}
		}
	case j.Type == wire.TypeRecreated:
		delete(b.frozen, j.Stream) // except for what stood in it when its barrier was folded; that is checked with what was fired twice
	case j.Type == wire.TypeReleased && len(j.Held) == 0:
		b.frozen = nil
	}
}

// confirm makes the broker keep everything that it has answered.
func (b *modelBroker) confirm(c *modelConn) {
	for _, a := range c.answers {
		if a.copy != nil {
			a.copy.confirmed = true
		}
	}
}

// openDispatches lists the entries whose fires, and burials if requested, the journal does not know
// to be confirmed.
func (b *modelBroker) openDispatches(c *modelConn, burials bool) []place {
	last := map[int64]int64{} // by epoch
	type fire struct {
		place
		tag        string
		epoch, seq int64
	}
	var fires []fire
	for _, r := range b.streams[wire.Journal].records {
		if r.UserID != millrace {
			continue
		}
		if p, ok := wire.ProbeOf(r.Headers); ok {
			last[p.Epoch] = max(last[p.Epoch], p.Confirmed)
			continue
		}
		if d, ok := wire.DispatchOf(r.Headers); ok {
			last[d.Epoch] = max(last[d.Epoch], d.Confirmed)
			if d.Burial() && !burials {
				continue
			}
			fires = append(fires, fire{b.place(d.Stream, d.Offset), d.JIDTag, d.Epoch, d.Seq})
			continue
		}
		j, err := wire.ParseJournal(r.Body)
		if err != nil {
			continue
		}
		if j.Epoch >= 0 && wire.HeaderInt(r.Headers, wire.HeaderSeq) == 1_000_000 { // a late record: void
			continue
		}
		last[j.Epoch] = max(last[j.Epoch], wire.HeaderInt(r.Headers, wire.HeaderConfirmed), j.Through)
		if k := j.KnownConfirmed; k != nil {
			last[k.Epoch] = max(last[k.Epoch], k.Through)
		}
	}
	var open []place
	for _, f := range fires {
		fire := wire.Through{Epoch: f.epoch, Through: f.seq}
		if _, known := b.known[fire]; f.seq > last[f.epoch] && !known && !b.back[fire] { // what came back can be seen there
			open = append(open, f.place)
			b.unsafeTags[f.tag] = true
		}
	}
	if c != nil {
		for _, s := range c.out {
			if d, ok := wire.DispatchOf(s.message.Headers); ok && (burials || !d.Burial()) {
				open = append(open, b.place(d.Stream, d.Offset))
				b.unsafeTags[d.JIDTag] = true
			}
		}
	}
	return open
}

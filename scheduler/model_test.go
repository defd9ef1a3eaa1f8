package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// The model: a broker with streams and queues, sidecars with views that read at their own pace, and whatever may go wrong between
// them. It is driven by the property test.

// What the model's leaders keep of dead jobs.
const (
	deadMax = 6
	deadAge = 150 * time.Second
)

const millrace = "millrace" // the user that Millrace has on the model's broker

// modelStream is one stream; a stream that is made anew starts at offset 0 again.
type modelStream struct {
	generation int
	base       int // records below it were taken by retention
	records    []wire.Record
	spent      int // below it low water has passed: retention may take it
	late       []span
}

// span is a barrier, and a late one behind it.
type span struct{ barrier, late int }

// beforeLate is how far retention may go without leaving a late barrier and not the one before it, which alone tells that it is late: a stated
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

// get gives a record, nil where retention took it.
func (s *modelStream) get(offset int64) *wire.Record {
	if int(offset) < s.base || int(offset) >= s.end() {
		return nil
	}
	return &s.records[int(offset)-s.base]
}

// copyOf is a job in a queue, or one that was there.
type copyOf struct {
	deed      wire.Deed
	queue     string
	at        time.Time
	confirmed bool // the broker has confirmed it: a crash does not take it
	gone      bool // a crash took it
}

// sent is a publish on its way to the broker.
type sent struct {
	tag     uint64
	message wire.Message
}

// answer is a confirm on its way to the leader.
type answer struct {
	tag  uint64
	ack  bool
	copy *copyOf // what the leader will know of when it gets the answer
}

// modelBroker has no clock and loses nothing by itself.
type modelBroker struct {
	streams map[string]*modelStream
	copies  []*copyOf
	full    map[string]bool // queues that refuse what is published
	deaf    int             // so many records that are published to streams alone are refused
	nacks   func(wire.Message) bool

	journalDown bool // what is nacked of burials is among the dead jobs, and not in the journal

	witness string
	conn    *modelConn // the one that holds the lock
	unsafe  map[place]string
	gone    map[place]string // entries that may be lost, with why
	told    [][]byte         // what workers were told
	onCopy  func(*copyOf)    // called for each job that reaches a queue

	trimmed    map[string]bool // jids of dead jobs that were given up
	unsafeTags map[string]bool // jids of which a fire may have come twice, or not at all

	jids   map[place]string // of all entries that were ever appended
	origin map[place]place  // of entries that stand for older ones, the first of all
	frozen map[string]place // by stream, the end of what a leader held because of a gap
	broken []string         // what was fired though it was held

	cut      bool           // jobs.fire does not lead to the queues
	muted    bool           // jobs.fire does not lead to the journal
	repeated map[place]bool // entries that stand for what went astray

	everCut bool // one of them was, once

	cutBury bool // jobs.bury does not lead to the dead jobs
	torn    bool // it is dying, and takes in burials in the journal alone
	ended   bool // it is dying, and the journal takes in nothing any more

	unnoticed bool // a stream was made anew, or the journal lost, and no leader has seen it yet
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
	out     []sent   // not processed by the broker yet
	answers []answer // not read by the leader yet
	arrived []int64  // probes, not seen by the leader yet

	unpublishable func(wire.Message) bool // what amqp091-go would refuse to send
	dies          func() bool             // asked before each publish whether the connection has died
}

func newModelBroker() *modelBroker {
	b := &modelBroker{streams: map[string]*modelStream{}, full: map[string]bool{}, unsafe: map[place]string{}, gone: map[place]string{},
		jids: map[place]string{}, origin: map[place]place{}, unsafeTags: map[string]bool{}, trimmed: map[string]bool{}, repeated: map[place]bool{}, onCopy: func(*copyOf) {}}
	for _, name := range ledBy {
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
	c.out = append(c.out, sent{c.next, m})
	return c.next, nil
}

func (b *modelBroker) append(stream string, user string, m wire.Message) int64 {
	s := b.streams[stream]
	offset := int64(s.end())
	s.records = append(s.records, wire.Record{Stream: stream, Offset: offset, UserID: user, Headers: m.Headers, Body: m.Body})
	if e, err := wire.ParseEntry(stream, offset, m.Body); err == nil {
		b.jids[place{stream, s.generation, offset}] = e.JID
	}
	return offset
}

// place is an entry of the stream that is there now: where it stood first.
func (b *modelBroker) place(stream string, offset int64) place {
	return b.first(place{stream, b.streams[stream].generation, offset})
}

// placeWith is the newest entry at an offset that has a jid: its stream may have been made anew since.
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

// process takes the next publish of a connection in.
func (b *modelBroker) process(c *modelConn, now time.Time) {
	if len(c.out) == 0 {
		return
	}
	next := c.out[0]
	c.out = c.out[1:]
	m := next.message
	if b.ended {
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
	switch m.Exchange {
	case wire.ExchangeFire:
		if !b.muted {
			b.append(wire.Journal, millrace, m)
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
		d, _ := wire.DeedOf(m.Headers)
		if end, held := b.frozen[d.Stream]; held && d.Op == wire.OpFired && end.generation == b.streams[d.Stream].generation && d.Offset < end.offset {
			b.broken = append(b.broken, fmt.Sprintf("%s@%d was fired though it was held", d.Stream, d.Offset))
		}
		reply.copy = &copyOf{deed: d, queue: m.Key, at: m.Timestamp}
		b.copies = append(b.copies, reply.copy)
		b.onCopy(reply.copy)
	case wire.ExchangeBury:
		if !b.cutBury && !b.torn {
			b.append(wire.DeadJobs, millrace, m)
		}
		b.append(wire.Journal, millrace, m)
	case wire.Control:
		b.told = append(b.told, m.Body)
	default:
		if b.deaf > 0 {
			b.deaf--
			reply.ack = false
			break
		}
		offset := b.append(m.Key, millrace, m)
		if replaced, ok := m.Headers[wire.HeaderReplaces].(int64); ok {
			here := place{m.Key, b.streams[m.Key].generation, offset}
			b.origin[here] = b.place(m.Key, replaced)
		}
		if from, ok := m.Headers[wire.HeaderStream].(string); ok { // it repeats what went astray
			was := b.placeWith(from, wire.Int(m.Headers, wire.HeaderOffset), m.MessageID)
			here := place{m.Key, b.streams[m.Key].generation, offset}
			b.origin[here], b.repeated[was], b.repeated[here] = was, true, true
		}
		if j, err := wire.ParseJournal(m.Body); err == nil {
			b.note(&j)
		}
	}
	c.answers = append(c.answers, reply)
}

// note notes what a record of the journal allows.
func (b *modelBroker) note(j *wire.JournalRecord) {
	switch {
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
		delete(b.frozen, j.Stream) // but for what stood in it when its barrier was folded; that is checked with what was fired twice
	case j.Type == wire.TypeReleased && len(j.Held) == 0:
		b.frozen = nil
	}
}

// confirm has the broker make its word good for everything that it has answered.
func (b *modelBroker) confirm(c *modelConn) {
	for _, a := range c.answers {
		if a.copy != nil {
			a.copy.confirmed = true
		}
	}
}

// openDeeds lists the entries whose fires, and burials if asked for, the journal does not know to be confirmed.
func (b *modelBroker) openDeeds(c *modelConn, burials bool) []place {
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
		if d, ok := wire.DeedOf(r.Headers); ok {
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
		if j.Epoch >= 0 && wire.Int(r.Headers, wire.HeaderSeq) == 1_000_000 { // a late record: void
			continue
		}
		last[j.Epoch] = max(last[j.Epoch], wire.Int(r.Headers, wire.HeaderConfirmed), j.Through)
		if k := j.KnownConfirmed; k != nil {
			last[k.Epoch] = max(last[k.Epoch], k.Through)
		}
	}
	var open []place
	for _, f := range fires {
		if f.seq > last[f.epoch] {
			open = append(open, f.place)
			b.unsafeTags[f.tag] = true
		}
	}
	if c != nil {
		for _, s := range c.out {
			if d, ok := wire.DeedOf(s.message.Headers); ok && (burials || !d.Burial()) {
				open = append(open, b.place(d.Stream, d.Offset))
				b.unsafeTags[d.JIDTag] = true
			}
		}
	}
	return open
}

// sidecar is one process of the model.
type modelSidecar struct {
	name    string
	broker  *modelBroker
	store   *view.Store
	entries *tracker.Entries
	at      map[string]int // how many records of each stream were read
	gen     map[string]int
	core    *core
	conn    *modelConn
	known   *wire.Through
	terms   int
	suspect map[spot]int

	later    []func()                                          // what is read in the background, at the next step
	journals int                                               // as the scheduler keeps it
	fetch    func(stream string, offset int64) ([]byte, error) // of large entries; from the broker if nil
	followed bool                                              // it has read all that there was once: before that nobody stands for election
}

func newModelSidecar(b *modelBroker, name string) (*modelSidecar, error) {
	s := &modelSidecar{name: name, broker: b, at: map[string]int{}, gen: map[string]int{}}
	return s, s.forget()
}

// forget is the loss of the state dir, and of the process.
func (s *modelSidecar) forget() (err error) {
	if s.store != nil {
		_ = s.store.Close()
	}
	s.known, s.suspect, s.followed = nil, nil, false
	clear(s.at)
	for name, stream := range s.broker.streams {
		s.gen[name] = stream.generation
	}
	if s.store, err = view.Open(view.Config{Identity: "model", Cache: 1 << 20}); err != nil {
		return err
	}
	s.entries, err = tracker.NewEntries(s.store, millrace)
	return err
}

// restart is a new process on the old state dir.
func (s *modelSidecar) restart() (err error) {
	s.known, s.suspect, s.followed = nil, nil, false
	s.entries, err = tracker.NewEntries(s.store, millrace)
	return err
}

// read folds up to n records of a stream.
func (s *modelSidecar) read(stream string, n int) error {
	from := s.broker.streams[stream]
	s.meet(stream)
	if s.gen[stream] != from.generation {
		if stream != wire.Journal {
			_, err := s.rebuild()
			return err // the reader has found out, and waits for a rewind
		}
		if err := s.anew(stream, func(tx *view.Tx) error { _, err := s.entries.Forget(tx, stream); return err }); err != nil {
			return err
		}
	}
	if s.at[stream] > 0 && s.at[stream] <= from.base { // the record that was read last is gone: there may be a hole
		if err := s.anew(stream, func(tx *view.Tx) error { return s.entries.Overtaken(tx, stream) }); err != nil {
			return err
		}
	}
	s.at[stream] = max(s.at[stream], from.base)
	n = min(n, from.end()-s.at[stream])
	if n <= 0 {
		return nil
	}
	records := from.records[s.at[stream]-from.base:][:n]
	var rewound []string
	err := s.store.Apply(s.entries, stream, records, func() error { return nil }, func(names []string) { rewound = names })
	s.at[stream] += n
	for _, name := range rewound {
		s.at[name], s.gen[name] = 0, s.broker.streams[name].generation
	}
	return err
}

// anew has a stream read from its first record, as view's tail does.
func (s *modelSidecar) anew(stream string, tell func(tx *view.Tx) error) error {
	s.at[stream], s.gen[stream], s.followed = 0, s.broker.streams[stream].generation, false
	return s.store.Update(func(tx *view.Tx) error {
		if err := tell(tx); err != nil {
			return err
		}
		return s.entries.Commit(tx)
	})
}

// rebuild has the view built anew if it has to be, because a stream was made anew after the journal was lost.
func (s *modelSidecar) rebuild() (bool, error) {
	if s.entries.State().Journals == 0 || len(s.recreated()) == 0 {
		return false, nil
	}
	s.disconnect()
	return true, s.forget()
}

// readAll folds everything there is.
func (s *modelSidecar) readAll() error {
	for moved := true; moved; {
		moved = false
		if rebuilt, err := s.rebuild(); err != nil || rebuilt {
			return errors.Join(err, s.readAll())
		}
		for _, name := range slices.Sorted(mapKeys(s.broker.streams)) {
			if s.behind(name) {
				moved = true
				if err := s.read(name, 1<<30); err != nil {
					return err
				}
			}
		}
	}
	s.followed = true
	return nil
}

// meet is what a reader does that has not read anything yet: whatever stream is there is the one.
func (s *modelSidecar) meet(stream string) {
	if s.at[stream] == 0 {
		s.gen[stream] = s.broker.streams[stream].generation
	}
}

func (s *modelSidecar) behind(stream string) bool {
	s.meet(stream)
	from := s.broker.streams[stream]
	return s.gen[stream] == from.generation && s.at[stream] < from.end() || s.gen[stream] != from.generation && stream == wire.Journal
}

func (s *modelSidecar) recreated() (all []string) {
	for _, name := range wire.EntryStreams {
		s.meet(name)
		if s.gen[name] != s.broker.streams[name].generation {
			all = append(all, name)
		}
	}
	return all
}

// elect gives the sidecar the lock, when it has read everything.
func (s *modelSidecar) elect(refuses func(string) bool) error {
	if s.broker.conn != nil {
		return nil
	}
	if err := s.readAll(); err != nil {
		return err
	}
	s.stand(refuses)
	return nil
}

// stand gives the sidecar the lock, however far it has read.
func (s *modelSidecar) stand(refuses func(string) bool) {
	s.terms++
	if journals := s.entries.State().Journals; journals != s.journals {
		s.known, s.journals = nil, journals
	}
	s.conn = &modelConn{broker: s.broker}
	s.broker.conn = s.conn
	s.core = newCore(s.entries, s.conn, setup{
		identity: fmt.Sprintf("%s/%d", s.name, s.terms), onGap: "hold", deadMax: deadMax, deadAge: deadAge, pace: pace{look: 2, batch: 1, records: 1, read: 2}, known: s.known, suspects: s.suspect, mayRefuse: refuses,
		patience: func() time.Duration { return 3 * time.Second }, journal: s.broker.journal, readLater: s.readLater,
		fetch: func(stream string, offset int64) ([]byte, error) {
			if s.fetch != nil {
				return s.fetch(stream, offset)
			}
			if r := s.broker.streams[stream].get(offset); r != nil {
				return r.Body, nil
			}
			return nil, nil
		},
	})
}

// step drives the sidecar's core once, as leadership.loop does.
func (s *modelSidecar) step(now time.Time) error {
	if s.core == nil {
		return nil
	}
	if s.gen[wire.Journal] != s.broker.streams[wire.Journal].generation {
		s.disconnect()
		return nil
	}
	if rebuilt, err := s.rebuild(); err != nil || rebuilt {
		return err
	}
	for _, name := range s.recreated() {
		if s.core.phase > phaseCatching {
			s.disconnect()
			return nil
		}
		if err := s.core.isRecreated(now, name); err != nil {
			return err
		}
	}
	s.readNow()
	if _, err := s.core.step(now); err != nil {
		return err
	}
	for _, number := range s.conn.arrived {
		s.core.proven(number)
	}
	s.conn.arrived = nil
	switch s.core.phase {
	case phaseWay:
		return s.checkWay(now)
	case phaseWitness:
		s.broker.unnoticed = false
		w := s.entries.State().Witness
		s.core.witnessed(w != "" && w == s.broker.witness)
	case phaseSettled:
		name := s.broker.witness
		if !s.core.settling.intact {
			name = fmt.Sprintf("%s%s-%d", wire.WitnessPrefix, s.name, s.terms)
			s.broker.witness = name
		}
		return s.core.settled(now, name)
	}
	return nil
}

// answer hands the leader its next confirm.
func (s *modelSidecar) answer(now time.Time) error {
	if s.core == nil || len(s.conn.answers) == 0 {
		return nil
	}
	a := s.conn.answers[0]
	s.conn.answers = s.conn.answers[1:]
	if a.copy != nil {
		a.copy.confirmed = true
	}
	return s.core.confirmed(now, a.tag, a.ack)
}

// disconnect ends the sidecar's connection; its process lives on.
func (s *modelSidecar) disconnect() {
	if s.core == nil {
		return
	}
	s.known = s.core.through()
	s.suspect = map[spot]int{}
	s.lose()
}

// lose is the end of a connection as the broker sees it: what was not processed is gone.
func (s *modelSidecar) lose() {
	if s.conn != nil && s.broker.conn == s.conn {
		s.broker.conn = nil
	}
	s.core, s.conn, s.later = nil, nil, nil
}

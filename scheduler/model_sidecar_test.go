package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// modelSidecar is one process of the model.
type modelSidecar struct {
	name    string
	broker  *modelBroker
	store   *view.Store
	entries *tracker.Entries
	at      map[string]int // how many records of each stream were read
	gen     map[string]int
	core    *core
	conn    *modelConn
	known   *wire.Confirmed
	terms   int
	suspect map[ledger.EntryID]int

	asked        []string                                          // queues that the core wants to be bound
	governs      []governing                                       // what the core wants of governed queues
	altAsked     bool                                              // it wants the alternate exchange to be tried
	later        []func()                                          // what is read in the background, at the next step
	journals     int                                               // as the scheduler keeps it
	fetch        func(stream string, offset int64) ([]byte, error) // of large entries; from the broker if nil
	known0       string                                            // the witness that the journal named when the epoch began
	decideAt     time.Time                                         // when it is known whether it stands
	standing     string                                            // the witness that this leader wrote down last
	refuses      func(string) bool                                 // which queues may refuse a job, by what the broker says
	lastFollowed int64                                             // the newest probe that is followed by one to no queue
	lease        *lease
	unsaid       bool            // the journal does not say that its last epoch has ended
	knownBy      string          // the identity of that epoch
	acked        []acked         // these
	left         leftovers       // of its last epoch, where its claim continues
	followed     bool            // it has once read all that there was: it does not stand for election before
	reading      map[string]bool // streams with a reader that is connected: it notices only what it did not get
}

func newModelSidecar(b *modelBroker, name string) (*modelSidecar, error) {
	s := &modelSidecar{name: name, broker: b, at: map[string]int{}, gen: map[string]int{}, reading: map[string]bool{}}
	return s, s.forget()
}

// forget loses the state directory and the process.
func (s *modelSidecar) forget() (err error) {
	if s.store != nil {
		_ = s.store.Close()
	}
	s.known, s.unsaid, s.suspect, s.followed = nil, false, nil, false
	clear(s.at)
	clear(s.reading)
	for name, stream := range s.broker.streams {
		s.gen[name] = stream.generation
	}
	if s.store, err = view.Open(view.Config{Identity: "model", Cache: 1 << 20}); err != nil {
		return err
	}
	s.entries, err = tracker.NewEntries(s.store, millrace)
	return err
}

// restart starts a new process on the old state directory.
func (s *modelSidecar) restart() (err error) {
	s.known, s.unsaid, s.suspect, s.followed = nil, false, nil, false
	clear(s.reading)
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
			return err // the reader has found the loss, and waits for a rewind
		}
		if err := s.readAgain(stream, func(tx *view.Tx) error { _, err := s.entries.Forget(tx, stream); return err }); err != nil {
			return err
		}
	}
	// The record that was read last is gone, or what follows it: there may be a hole.
	if at := s.at[stream]; at > 0 && (at < from.base || at == from.base && !s.reading[stream]) {
		if err := s.readAgain(stream, func(tx *view.Tx) error { return s.entries.Overtaken(tx, stream) }); err != nil {
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
	s.reading[stream] = true
	for _, name := range rewound {
		s.at[name], s.gen[name] = 0, s.broker.streams[name].generation
	}
	return err
}

// readAgain has a stream read from its first record, as view's tail does.
func (s *modelSidecar) readAgain(stream string, forget func(tx *view.Tx) error) error {
	s.at[stream], s.gen[stream], s.followed = 0, s.broker.streams[stream].generation, false
	return s.store.Update(func(tx *view.Tx) error {
		if err := forget(tx); err != nil {
			return err
		}
		return s.entries.Commit(tx)
	})
}

// rebuild rebuilds the view if that is necessary, because a stream was created again after the
// journal was lost.
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

// meet is what a reader does that has not read anything yet: it accepts any stream that exists.
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
	if s.broker.conn != nil || s.core != nil {
		return nil
	}
	if err := s.readAll(); err != nil {
		return err
	}
	s.stand(refuses)
	return nil
}

// stand gives the sidecar the lock, even if it has not read everything.
func (s *modelSidecar) stand(refuses func(string) bool) {
	s.terms++
	s.refuses = refuses
	if journals := s.entries.State().Journals; journals != s.journals {
		s.known, s.journals = nil, journals
	}
	s.conn = &modelConn{broker: s.broker, leader: s}
	s.broker.conn = s.conn
	s.unsaid, s.acked = false, nil // the record opened says it
	s.begin()
}

// begin begins an epoch.
func (s *modelSidecar) begin() {
	s.core = newCore(s.entries.Reader, s.conn, setup{
		identity: fmt.Sprintf("%s/%d", s.name, s.terms), onGap: "hold", deadMax: deadMax, deadAge: deadAge, pace: pace{look: 2, batch: 1, records: 1, read: 2}, known: s.known, suspects: s.suspect, left: s.left,
		window:       func(string) int { return s.broker.window },
		certain:      func(queue string) bool { return !s.broker.cluster && s.proof().of(queue) },
		probeTimeout: func() time.Duration { return 3 * time.Second }, journal: s.broker.journal, readLater: s.readLater,
		fetch: func(stream string, offset int64) ([]byte, error) {
			if s.fetch != nil {
				return s.fetch(stream, offset)
			}
			if r := s.broker.streams[stream].get(offset); r != nil {
				return wire.EntryBody(r)
			}
			return nil, nil
		},
		answer:       func(to wire.Delivery, r wire.Reply) { s.broker.onAnswer(to, r) },
		hasRead:      func(stream string, _ time.Time) bool { return !s.behind(stream) },
		follow:       func(number int64) { s.lastFollowed = number },
		isBound:      func(string) bool { return true }, // as was read once
		govern:       func(wanted []governing) { s.governs = wanted },
		tryAlternate: func() { s.altAsked = true },
		bind: func(queue string) error {
			s.asked = append(s.asked, queue)
			return nil
		},
	})
	s.core.unrouted.on, s.left = true, leftovers{}
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
		if s.core.phase > phaseCatchingUp {
			s.disconnect()
			return nil
		}
		if err := s.core.opening.isRecreated(now, name); err != nil {
			return err
		}
	}
	s.readNow()
	s.bindNow(now)
	if s.core.phase == phaseLeading {
		if err := s.governNow(now); err != nil {
			return err
		}
	}
	if _, err := s.core.step(now); err != nil {
		return err
	}
	for _, number := range s.conn.arrived {
		if number == s.lastFollowed && s.broker.cutGated {
			return errMisrouted
		}
		s.core.routing.arrived(number)
	}
	s.conn.arrived = nil
	s.takeBounced(s.broker.bounces)
	switch s.core.phase {
	case phaseRouting:
		return s.checkWay(now)
	case phaseWitness:
		s.broker.unnoticed = false
		s.core.witnessed(s.check(now), s.proof())
	case phaseReconciled:
		if !s.stillHolds() {
			return nil
		}
		s.standing = s.broker.renew()
		s.broker.bare[s.core.ledger.Epoch()] = s.standing == ""
		s.broker.changesAt[s.core.ledger.Epoch()] = s.broker.nodes + s.broker.links
		if s.broker.links != s.broker.linkSeen {
			s.broker.changesAt[s.core.ledger.Epoch()] = -1 // its witness is older than its fires
		}
		return s.core.begin(now, s.standing)
	case phaseLeading:
		if s.broker.cluster && !s.broker.silent && s.standing != s.broker.renew() {
			s.standing = s.broker.renew()
			if err := s.core.rewitnessed(now, s.standing); err != nil {
				return err
			}
		}
		if s.core.reconciler.verdict == undecided {
			s.decide(now)
		}
		return s.decideOverdue(now)
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
		if d := a.copy.headers; a.ack && d.Epoch == s.core.ledger.Epoch() {
			s.conn.acked = append(s.conn.acked, acked{wire.Through{Epoch: d.Epoch, Through: d.Seq}, s.conn.next})
		}
	}
	for stream, end := range a.ends { // a client's publish may have been confirmed since
		s.broker.sure[stream] = max(s.broker.sure[stream], end)
	}
	return s.core.ledger.Confirmed(now, a.tag, a.ack)
}

// disconnect ends the sidecar's connection. Its process continues.
func (s *modelSidecar) disconnect() {
	if s.core == nil {
		return
	}
	s.remember()
	s.acked = s.conn.acked
	s.suspect = map[ledger.EntryID]int{}
	s.lose()
}

// lose ends a connection as the broker sees it: what was not processed is gone.
func (s *modelSidecar) lose() {
	if s.conn != nil && s.broker.conn == s.conn {
		s.broker.conn = nil
	}
	if s.core != nil {
		s.broker.forgetLostCopies()
	}
	s.core, s.conn, s.later, s.asked, s.governs, s.altAsked = nil, nil, nil, nil, nil, false
}

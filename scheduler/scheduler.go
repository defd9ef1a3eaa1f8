package scheduler

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Config says how a sidecar schedules.
type Config struct {
	Broker    broker.Config
	Identity  string        // of this sidecar, in the journal; host and process id if empty
	OnGap     string        // what becomes of due entries when the journal has lost records: hold (default), fire or discard
	MaxQueues int           // how many queues Millrace makes at most; default 1,000
	DeadMax   int           // how many dead jobs are kept at most, beside those that queues dropped; default 1,000,000
	DeadAge   time.Duration // how long they are kept; default 180 days
	Rollups   Rollups       // of metrics, to be published; nil: none
	Log       *slog.Logger
}

// Records is where bodies are fetched that the view does not keep.
type Records interface {
	// Read delivers a stream's records from an offset on, until ctx ends or deliver fails.
	Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error
	// Fetch gets one record from its stream.
	Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error)
	// First is the offset of the oldest record that a stream still has; ok is false if the stream is empty.
	First(ctx context.Context, stream string) (offset int64, ok bool, err error)
}

// Scheduler stands for election, and leads while it is elected.
type Scheduler struct {
	cfg     Config
	view    *view.View
	store   *view.Store
	entries *tracker.Entries
	mgmt    *broker.Management
	records Records
	log     *slog.Logger

	known    *wire.Through // what the last epoch of this process knows to be confirmed
	journals int           // as it counted them; see tracker.State
	suspects map[spot]int  // see core
	reluctance

	mu     sync.Mutex
	status Status
	kept   map[string]broker.Retention // of streams, by name; nil if the broker does not tell
	made   map[string]time.Time        // queues that this process made, with when they were last in use
	fatal  map[string]int              // names of queues, with how often the broker closed the connection when it was asked about them
	queues map[string]bool             // queues by full name, with whether they may refuse a job, as far as the broker tells
	topo   broker.Topology
	base   int64 // the offset at which streams begin on the broker
}

// New makes a scheduler. mgmt may be nil.
func New(cfg Config, v *view.View, store *view.Store, entries *tracker.Entries, mgmt *broker.Management, records Records) *Scheduler {
	if cfg.MaxQueues == 0 {
		cfg.MaxQueues = 1000
	}
	if cfg.DeadMax <= 0 {
		cfg.DeadMax = DefaultDeadMax
	}
	if cfg.DeadAge <= 0 {
		cfg.DeadAge = DefaultDeadAge
	}
	s := &Scheduler{cfg: cfg, view: v, store: store, entries: entries, mgmt: mgmt, records: records, log: cfg.Log, queues: map[string]bool{}, made: map[string]time.Time{}, fatal: map[string]int{}}
	s.status = Status{Epoch: -1, Phase: "connecting", Since: time.Now()}
	return s
}

// longestPause is how long a part waits at most before it connects again.
const longestPause = 2 * time.Second

// Run stands for election, leads and begins again, until ctx ends.
func (s *Scheduler) Run(ctx context.Context) error {
	retry := pause.Growing(longestPause)
	for ctx.Err() == nil {
		begun := time.Now()
		err := s.term(ctx)
		if ctx.Err() != nil {
			return nil
		}
		level := slog.LevelWarn
		if time.Since(begun) < time.Second && s.Status().LastError != "" { // said before
			level = slog.LevelDebug
		}
		s.log.Log(ctx, level, "scheduler: starting again", "error", err)
		s.setStatus(func(st *Status) {
			st.Leader, st.Epoch, st.LastError = false, -1, fmt.Sprint(err)
			st.Counters.Lost++
		})
		s.phase("connecting")
		if time.Since(begun) > 10*time.Second {
			retry.Reset()
		}
		_ = pause.For(ctx, retry.NextBackOff())
	}
	return nil
}

// Topology is what was found on the broker when it was last asserted.
func (s *Scheduler) Topology() broker.Topology {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topo
}

// Status is what this sidecar knows of its own part in leadership.
func (s *Scheduler) Status() Status {
	state := s.entries.State()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	if st.Gap = state.Gap(s.base); len(state.Held) > 0 {
		st.Gap = cmp.Or(state.Why, "the journal had lost records; what was due then is held")
	}
	return st
}

func (s *Scheduler) setStatus(fn func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(&s.status)
}

func (s *Scheduler) phase(name string) {
	s.setStatus(func(st *Status) {
		if st.Phase != name {
			st.Phase, st.Since = name, time.Now()
		}
	})
}

// term is one connection: it waits for its turn and leads.
func (s *Scheduler) term(ctx context.Context) error {
	conn, err := broker.Dial(ctx, s.cfg.Broker)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// Policies first: from the moment that clients can publish, what cannot be routed or is rejected must go somewhere.
	if err := s.assertPolicies(ctx); err != nil {
		s.log.Warn("scheduler: cannot set policies", "error", err)
	}
	if err := s.prepare(ctx, conn); err != nil {
		return err
	}
	s.setStatus(func(st *Status) { st.LastError = "" })
	s.phase("waiting")
	if err := s.waitForView(ctx, conn); err != nil {
		return err
	}
	inbox, err := s.waitForLock(ctx, conn)
	if err != nil {
		return err
	}
	if !s.fit(time.Now()) { // the wait may have been long
		return errUnfit
	}
	return s.lead(ctx, conn, inbox)
}

var errUnfit = errors.New("scheduler: elected, but the view is behind: another may be better off")

// prepare asserts what Millrace needs on the broker.
func (s *Scheduler) prepare(ctx context.Context, conn *broker.Conn) error {
	topo, err := conn.AssertTopology(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.topo, s.base = topo, conn.Features().StreamOffsetBase
	s.mu.Unlock()
	s.tell(topo)
	s.readQueues(ctx)
	return nil
}

func (s *Scheduler) tell(topo broker.Topology) {
	for _, f := range topo.Findings {
		s.log.Warn("scheduler: "+f.Problem, "subject", f.Subject, "remedy", f.Remedy)
	}
}

const (
	// maxStandingLag is how far a view may be behind for its sidecar to stand for election, as long as another one may be better off.
	maxStandingLag = 5 * time.Second

	// maxReluctance is how long it gives way to others. Where more is published than anybody reads, all are behind, and one must lead.
	maxReluctance = 30 * time.Second
)

// ledBy are the streams that a leader must know.
var ledBy = append([]string{wire.Journal}, wire.EntryStreams...)

// fit tells whether the view knows what can be known without a leader, and lately.
func (s *Scheduler) fit(now time.Time) bool {
	return s.view.Followed(ledBy...) && s.ends(now, s.view.LagOf(ledBy...))
}

// reluctance is since when a sidecar does not stand for election only because its view is behind.
type reluctance struct{ since time.Time }

// ends tells whether it stands, with a view that is so far behind.
func (r *reluctance) ends(now time.Time, lag time.Duration) bool {
	switch {
	case lag < maxStandingLag:
		r.since = time.Time{}
		return true
	case r.since.IsZero():
		r.since = now
	}
	return now.Sub(r.since) >= maxReluctance
}

// waitForView waits until this sidecar is fit to lead. One whose journal has a gap lets others go first.
func (s *Scheduler) waitForView(ctx context.Context, conn *broker.Conn) error {
	for {
		changed := s.view.Changed()
		if s.fit(time.Now()) {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-conn.Done():
			return conn.Err()
		case <-changed:
		case <-time.After(100 * time.Millisecond):
		}
	}
	gap := s.Status().Gap
	if gap == "" {
		return nil
	}
	s.log.Error("scheduler: the journal has a gap: as leader this sidecar holds what is due until an operator releases or discards it", "gap", gap)
	return pause.For(ctx, gapDelay)
}

// gapDelay is how long a sidecar with a gap lets others stand for election first.
const gapDelay = 3 * time.Second

// orphanAfter is how long the lock may be refused before it is asked who holds it.
const orphanAfter = time.Minute

func (s *Scheduler) waitForLock(ctx context.Context, conn *broker.Conn) (*broker.Consumer, error) {
	asked := time.Now()
	looking, stop := context.WithCancel(ctx)
	defer stop()
	for {
		inbox, err := conn.Lock(ctx)
		if err == nil {
			s.setStatus(func(st *Status) { st.Orphaned = false })
			return inbox, nil
		}
		if !errors.Is(err, broker.ErrLocked) {
			return nil, err
		}
		if time.Since(asked) > orphanAfter {
			asked = time.Now()
			go s.lookForLeader(looking, conn) // meanwhile the lock may become free
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-conn.Done():
			return nil, conn.Err()
		case <-time.After(time.Second):
		}
	}
}

// lookForLeader finds out whether who holds the lock leads: a client may have declared the queue.
func (s *Scheduler) lookForLeader(ctx context.Context, conn *broker.Conn) {
	reply := askOnce(ctx, s.cfg.Broker, wire.Command{Command: wire.CommandPing})
	_, _, blocked := conn.Blocked()
	opened := time.UnixMicro(int64(s.entries.State().OpenedAt * 1e6))
	orphaned := reply.Status == wire.StatusUnknown && !blocked && time.Since(opened) > orphanAfter
	if ctx.Err() != nil {
		return
	}
	s.setStatus(func(st *Status) { st.Orphaned = orphaned })
	if orphaned {
		s.log.Error("scheduler: jobs.leader is locked by none of us: nothing fires. A client has declared it: find its connection " +
			"(rabbitmqctl list_queues name owner_pid) and close it; clients need no permission to configure jobs.*")
	}
}

// readQueues notes which queues may refuse a job.
func (s *Scheduler) readQueues(ctx context.Context) {
	if s.mgmt == nil {
		return
	}
	queues, err := s.mgmt.Queues(ctx)
	if err != nil {
		s.log.Warn("scheduler: cannot list queues", "error", err)
		return
	}
	found, kept := map[string]bool{}, map[string]broker.Retention{}
	for _, q := range queues {
		found[q.Name] = q.MayRefuse()
		if q.Type == "stream" {
			kept[q.Name] = q.Retention()
		}
	}
	s.mu.Lock()
	s.queues, s.kept = found, kept
	s.mu.Unlock()
}

func (s *Scheduler) mayRefuse(queue string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[wire.QueuePrefix+queue]
}

// witnessName is a name for the queue that tells whether the broker restarted.
func witnessName() string { return wire.WitnessPrefix + random() }

// randomJID is for a job that has none.
func randomJID() string { return random() + random()[:8] }

func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

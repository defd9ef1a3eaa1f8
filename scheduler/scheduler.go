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
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Config configures a Scheduler.
type Config struct {
	Broker     broker.Config
	Identity   string                  // of this sidecar, in the journal; host and process id if empty
	OnGap      string                  // what is done with due entries after a gap: hold (default), fire or discard
	MaxQueues  int                     // how many queues Millrace declares at most; default 1,000
	SingleNode bool                    // the broker is one node, with classic job queues, and cannot say so itself
	DeadMax    int                     // how many dead jobs are kept, but for dropped ones; default 1,000,000
	DeadAge    time.Duration           // how long they are kept; default 180 days
	Rollups    Rollups                 // of metrics, to be published; may be nil
	Slots      func() map[string]int64 // how many jobs workers run at once, by queue, as far as they say; may be nil
	Moved      func()                  // is called when the sidecar has left the node of a broker; may be nil
	Log        *slog.Logger
}

// Records is where bodies are read that the view does not keep.
type Records interface {
	// Read delivers a stream's records from an offset on, until ctx ends or deliver fails.
	Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error
	// Fetch returns one record of a stream.
	Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error)
	// First returns the offset of the oldest record of a stream; ok is false if it is empty.
	First(ctx context.Context, stream string) (offset int64, ok bool, err error)
	// Last returns the offset of its newest record.
	Last(ctx context.Context, stream string) (offset int64, ok bool, err error)
}

// Scheduler stands for election, and leads while it is elected.
type Scheduler struct {
	*services
	board
	terms
	past
	queueBook
	wanted
	orphanAfter time.Duration
	olderNodes  atomic.Bool // a node of the cluster passes the lock on too soon, see passesLockAtOnce
}

// services are what a scheduler works with.
type services struct {
	cfg     Config
	view    *view.View
	store   *view.Store
	entries *tracker.Reader
	mgmt    *broker.Management // nil if there is none
	records Records
	log     *slog.Logger
}

// board shows what a sidecar knows of its own part in leadership.
type board struct {
	mu     sync.Mutex
	status Status
	base   int64 // the offset at which streams begin on the broker
}

// past is what earlier terms and epochs of this process leave to the next ones.
type past struct {
	known    *wire.Confirmed        // what the last epoch knows to be confirmed
	unsaid   atomic.Bool            // the journal does not say that this epoch has ended
	knownBy  string                 // the identity of that epoch's leader
	knownAt  int                    // how often the view had been rolled back when it began
	journals int                    // see tracker.State
	suspects map[ledger.EntryID]int // see ledger.Ledger
	standbyGrace
	policiesSet bool
	unanswered  unanswered
	left        bool // the last term ended although its connection did not
}

// New returns a Scheduler. mgmt may be nil.
func New(cfg Config, v *view.View, store *view.Store, entries *tracker.Reader, mgmt *broker.Management, records Records) *Scheduler {
	if cfg.MaxQueues == 0 {
		cfg.MaxQueues = 1000
	}
	if cfg.DeadMax <= 0 {
		cfg.DeadMax = DefaultDeadMax
	}
	if cfg.DeadAge <= 0 {
		cfg.DeadAge = DefaultDeadAge
	}
	s := &Scheduler{services: &services{cfg, v, store, entries, mgmt, records, cfg.Log}, orphanAfter: orphanAfter}
	s.queueBook = queueBook{services: s.services, queues: map[string]bool{}, made: map[string]time.Time{}, fatal: map[string]int{}}
	s.degraded.log, s.lookAgain, s.wantedOnce = cfg.Log, make(chan struct{}, 1), make(chan struct{})
	s.status = Status{Epoch: -1, Phase: "connecting", Since: time.Now()}
	return s
}

// longestPause is the longest pause before a part connects again.
const longestPause = 2 * time.Second

// Run stands for election, leads and begins again, until ctx ends.
func (s *Scheduler) Run(ctx context.Context) error {
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { s.watchWanted(ctx) })
	watch.Go(func() { s.watchNodes(ctx) })
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

// Status returns what this sidecar knows of its own part in leadership.
func (s *Scheduler) Status() Status {
	state := s.entries.State()
	st, base := s.shown()
	st.Degraded = s.degraded.list()
	if lease := s.epochLease(); lease != nil && st.Leader {
		st.LeaseAge = lease.Age()
	}
	if st.Gap = state.Gap(base); len(state.Held) > 0 {
		st.Gap = cmp.Or(state.Why, "the journal had lost records; what was due then is held")
	}
	return st
}

func (b *board) shown() (st Status, base int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status, b.base
}

func (b *board) setStatus(fn func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn(&b.status)
}

func (b *board) setBase(offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.base = offset
}

func (b *board) phase(name string) {
	b.setStatus(func(st *Status) {
		if st.Phase != name {
			st.Phase, st.Since = name, time.Now()
		}
	})
}

// term is one connection: it waits for its turn and leads.
func (s *Scheduler) term(ctx context.Context) (err error) {
	conn, err := broker.Dial(ctx, s.cfg.Broker)
	if err != nil {
		return err
	}
	if s.left && s.cfg.Moved != nil {
		s.cfg.Moved()
	}
	s.left = false
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	s.inTerm(leave)
	defer s.inTerm(nil)
	defer func() {
		if cause := context.Cause(ctx); errors.Is(cause, errIsolated) {
			err = cause
		}
		if err != nil {
			s.left = conn.Err() == nil
			conn.Shun() // the next term may fare better on another node
		}
		if errors.Is(err, errIsolated) {
			go func() { _ = conn.Close() }() // the node may not answer
			return
		}
		_ = conn.Close()
	}()
	if s.mgmt != nil { // what became of the last connection may be true of the API's too
		s.mgmt.Reconnect()
	}
	if words := s.takeLastWords(); words != nil {
		beside.Go(func() { s.sayLastWords(ctx, conn, words) })
	}
	s.setPolicies(ctx)
	if err := s.prepare(ctx, conn); err != nil {
		return err
	}
	s.refreshQueues(ctx, &beside)
	s.awaitWanted(ctx)
	s.setStatus(func(st *Status) { st.LastError = "" })
	s.phase("waiting")
	if err := s.waitForView(ctx, conn); err != nil {
		return err
	}
	return s.stand(ctx, conn)
}

var errUnfit = errors.New("scheduler: elected, but the view is behind: another may be better off")

// prepare asserts what Millrace cannot fire without.
func (s *Scheduler) prepare(ctx context.Context, conn *broker.Conn) error {
	topo, err := conn.Topology().Assert(ctx)
	s.setStatus(func(st *Status) {
		if st.Lacks = ""; err != nil {
			st.Lacks = err.Error()
		}
	})
	if err != nil {
		return err
	}
	s.setBase(conn.Features().StreamOffsetBase)
	s.logFindings(topo)
	return nil
}

// setPolicies sets Millrace's policies before this process first leads: once clients can publish,
// messages that are unroutable or rejected must go somewhere. Later watchWanted does that. A slow
// management API does not keep a sidecar from leading.
func (s *Scheduler) setPolicies(ctx context.Context) {
	if s.mgmt == nil || s.policiesSet {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, policiesWithin)
	defer cancel()
	_, err := s.mgmt.Policies(ctx)
	if s.policiesSet = err == nil; err != nil {
		s.log.Debug("scheduler: cannot set policies yet", "error", err)
	}
}

// How long the management API may take, where something waits for its answer.
const (
	policiesWithin   = 3 * time.Second
	listQueuesWithin = 5 * time.Second
)

// logFindings logs what is not as it should be on the broker.
func (s *services) logFindings(topo broker.TopologyReport) {
	for _, f := range topo.Findings {
		s.log.Warn("scheduler: "+f.Subject+" "+f.Problem, "subject", f.Subject, "remedy", f.Remedy)
	}
}

const (
	// maxStandingLag is how far a view may lag for its sidecar to stand for election, while another
	// one may lag less.
	maxStandingLag = 5 * time.Second

	// maxReluctance is how long it gives way to others. If more is published than anyone reads, all
	// views lag, and one sidecar must lead.
	maxReluctance = 30 * time.Second
)

// leaderStreams are the streams that a leader must know.
var leaderStreams = append([]string{wire.Journal}, wire.EntryStreams...)

// eligible reports whether the view knows what can be known without a leader, and is recent.
func (s *Scheduler) eligible(now time.Time) bool {
	return s.view.CaughtUp(leaderStreams...) && s.expired(now, s.view.LagOf(leaderStreams...))
}

// standbyGrace is since when a sidecar does not stand for election only because its view lags.
type standbyGrace struct{ since time.Time }

// expired reports whether a sidecar whose view lags so far stands anyway.
func (r *standbyGrace) expired(now time.Time, lag time.Duration) bool {
	switch {
	case lag < maxStandingLag:
		r.since = time.Time{}
		return true
	case r.since.IsZero():
		r.since = now
	}
	return now.Sub(r.since) >= maxReluctance
}

// waitForView waits until this sidecar is eligible. If its journal has a gap, it lets others go
// first.
func (s *Scheduler) waitForView(ctx context.Context, conn *broker.Conn) error {
	for {
		changed := s.view.Changed()
		if s.eligible(time.Now()) {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-conn.Done():
			return conn.Err()
		case <-changed:
		case <-time.After(fitEvery):
		}
	}
	gap := s.Status().Gap
	if gap == "" {
		return nil
	}
	s.log.Error("scheduler: pending jobs are held, and are not delivered until an administrator runs millrace release (or discards them with "+
		"millrace release --discard), because the journal has a gap", "gap", gap, "on_gap", s.cfg.OnGap)
	return pause.For(ctx, gapDelay)
}

// gapDelay is how long it does so.
const gapDelay = 3 * time.Second

// randomJID returns a jid for a job that has none.
func randomJID() string { return random() + random()[:8] }

func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

package processes

import (
	"container/list"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Bounds of what is kept.
const (
	maxProcesses = 10_000
	maxBytes     = 64 << 20
	maxOne       = 256 << 10 // bytes of one process: beyond, what it runs now is left out

	// LostAfter is how long a process may be silent.
	LostAfter = time.Minute
	// KeptFor is how long a silent process is remembered.
	KeptFor = time.Hour
)

// table is the first byte of the keys: identity → process, as JSON.
const table = 'p'

// Processes is the fold over heartbeats.
type Processes struct {
	now   func() time.Time
	store *view.Store

	mu    sync.RWMutex
	byID  map[string]*list.Element // of *known
	order *list.List               // the one that was heard last at the end
	bytes int
	clock time.Time     // the latest that anything was heard
	skew  time.Duration // the least time from the broker's clock to this one that was seen
	timed bool          // skew is known
}

// known is a process as it is kept.
type known struct {
	Heard time.Time      `json:"heard"`
	Said  wire.Heartbeat `json:"said"`

	arrived time.Time // zero: in an earlier run
	size    int
}

// Open reads what is kept. now is time.Now if it is nil.
func Open(store *view.Store, now func() time.Time) (*Processes, error) {
	if now == nil {
		now = time.Now
	}
	p := &Processes{now: now, store: store}
	return p, p.Reload()
}

// Reload implements view.Reloader.
func (p *Processes) Reload() error {
	var all []*known
	var fault error
	err := p.store.Scan([]byte{table}, []byte{table + 1}, false, func(_, value []byte) bool {
		k := &known{size: len(value)}
		fault = json.Unmarshal(value, k)
		all = append(all, k)
		return fault == nil
	})
	if err == nil && fault != nil {
		err = fmt.Errorf("processes: what is kept is damaged: %w", fault)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *known) int { return a.Heard.Compare(b.Heard) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID, p.order, p.bytes = map[string]*list.Element{}, list.New(), 0
	for _, k := range all {
		p.keep(k)
	}
	return nil
}

// Streams implements tracker.Part.
func (p *Processes) Streams() []string { return []string{wire.Heartbeats} }

// Fold takes in a heartbeat.
func (p *Processes) Fold(tx *view.Tx, r *wire.Record) (string, []byte, error) {
	said, err := wire.ParseHeartbeat(r.Body)
	if err != nil {
		return err.Error(), r.Body, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &known{Said: said, arrived: p.now()}
	k.Heard = p.heard(r.Time, k)
	value, err := k.encode()
	if err != nil {
		return "", nil, err
	}
	p.keep(k)
	if err := tx.Set(key(said.Identity), value); err != nil {
		return "", nil, err
	}
	return "", nil, p.bound(tx)
}

// Commit implements tracker.Part.
func (p *Processes) Commit(*view.Tx) error { return nil }

// Forget implements tracker.Part. The processes are still there, although the stream is gone.
func (p *Processes) Forget(*view.Tx, string) error { return nil }

// heard is when a heartbeat came.
func (p *Processes) heard(stored time.Time, k *known) time.Time {
	if !stored.IsZero() {
		if late := k.arrived.Sub(stored); !p.timed || late < p.skew {
			p.skew, p.timed = late, true
		}
		return stored
	}
	before, ok := p.byID[k.Said.Identity]
	if !ok || before.Value.(*known).arrived.IsZero() {
		return earlier(k.Said.Beat, k.arrived)
	}
	last := before.Value.(*known)
	if k.arrived.Sub(last.arrived) < k.Said.Beat.Sub(last.Said.Beat)/2 {
		return earlier(k.Said.Beat, k.arrived) // heartbeats come faster than they are sent: these are old ones
	}
	return k.arrived
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (k *known) encode() ([]byte, error) {
	value, err := json.Marshal(k)
	if len(value) > maxOne {
		k.Said.Work, k.Said.Lanes, k.Said.Cut = nil, nil, true
		value, err = json.Marshal(k)
	}
	if err != nil {
		return nil, fmt.Errorf("processes: keep %q: %w", k.Said.Identity, err)
	}
	k.size = len(value)
	return value, nil
}

func (p *Processes) keep(k *known) {
	if old, ok := p.byID[k.Said.Identity]; ok {
		p.bytes -= old.Value.(*known).size
		p.order.Remove(old)
	}
	p.byID[k.Said.Identity] = p.order.PushBack(k)
	p.bytes += k.size
	if k.Heard.After(p.clock) {
		p.clock = k.Heard
	}
}

// bound forgets those that were heard longest ago: beyond the bounds, or when they have been silent
// for too long.
func (p *Processes) bound(tx *view.Tx) error {
	for p.order.Len() > 1 {
		first := p.order.Front()
		k := first.Value.(*known)
		if p.order.Len() <= maxProcesses && p.bytes <= maxBytes && p.clock.Sub(k.Heard) <= KeptFor {
			return nil
		}
		p.order.Remove(first)
		delete(p.byID, k.Said.Identity)
		p.bytes -= k.size
		if err := tx.Delete(key(k.Said.Identity)); err != nil {
			return err
		}
	}
	return nil
}

func key(identity string) []byte { return append([]byte{table}, identity...) }

// List gives all processes that are known, by identity.
func (p *Processes) List() []Process {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]Process, 0, len(p.byID))
	for _, e := range p.byID {
		if found, ok := p.process(e.Value.(*known)); ok {
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(a, b Process) int { return strings.Compare(a.Identity, b.Identity) })
	return all
}

// Get gives one process.
func (p *Processes) Get(identity string) (Process, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	e, ok := p.byID[identity]
	if !ok {
		return Process{}, false
	}
	return p.process(e.Value.(*known))
}

// process says how a process is now; ok is false if it has stopped, or was forgotten.
func (p *Processes) process(k *known) (_ Process, ok bool) {
	found := Process{Heartbeat: k.Said, Heard: k.Heard, State: Live}
	found.Silent = max(0, p.now().Sub(k.Heard)-p.skew)
	switch {
	case found.Silent > KeptFor:
		return found, false
	case found.Silent > LostAfter && k.Said.State == wire.StateStopping:
		return found, false // it said so, and did
	case found.Silent > LostAfter:
		found.State = Lost
	case k.Said.State == wire.StateQuiet:
		found.State = Quiet
	case k.Said.State == wire.StateStopping:
		found.State = Stopping
	}
	return found, true
}

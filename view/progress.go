package view

import (
	"context"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// progress is how far a stream was read. The package comment has a diagram of the states.
type progress struct {
	mu       sync.Mutex
	gen      int                     // rises with every rewind; an older reader is ignored
	stop     context.CancelCauseFunc // stops the reader
	state    state
	position int64
	target   int64 // end of the stream when the reader connected
	fault    string
	identity
	lateness lagEstimator
	end      streamEnd
}

// state is the state of a stream's reader.
type state int

const (
	stateConnecting state = iota
	stateMissing          // connecting, and the broker has no such stream
	stateCatchingUp       // below the end that the stream had when the reader connected
	stateRunning
)

// connected reports whether there is a reader that knows where the stream ended when it connected.
func (s state) connected() bool { return s == stateCatchingUp || s == stateRunning }

// identity says whether a stream is the one that was read before. It outlasts connections: only
// records show that a stream is the same.
type identity struct {
	is          likeness
	recreatedAt time.Time // when the stream was found to be recreated
	belowSince  time.Time // since when the stream ends below the last folded record, or zero
}

// likeness is what a stream is, compared with the one that was read before.
type likeness int

const (
	original likeness = iota // as far as is known
	emptied                  // is empty now; a leader's barrier shows whether it is another stream
	recreated
)

// identityConfirmed records that the stream is the one that was read before. Only now can the view
// be caught up. identityConfirmed reports whether it has just become so.
func (p *progress) identityConfirmed(generation int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gen != generation {
		return false
	}
	p.identity, p.fault = identity{}, ""
	return p.reach()
}

// reach updates whether the view is caught up, and reports whether it has just become so. The
// caller holds p.mu.
func (p *progress) reach() bool {
	if p.state != stateCatchingUp || p.position < p.target {
		return false
	}
	p.state = stateRunning
	return true
}

func (p *progress) folded(generation int, records []wire.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gen != generation {
		return
	}
	last := records[len(records)-1]
	p.position = max(last.Offset, last.Through)
	p.reach()
	p.lateness.folded(time.Now(), last.Time, p.state == stateRunning)
}

func (p *progress) rewind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gen++
	if p.state == stateRunning {
		p.state = stateCatchingUp
	}
	p.is, p.position, p.end.known = original, none, false
	if p.stop != nil {
		p.stop(nil)
	}
}

func (p *progress) generation() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gen
}

func (p *progress) caughtUp() bool { return p.currently() == stateRunning }

func (p *progress) isMissing() bool { return p.currently() == stateMissing }

func (p *progress) currently() state {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *progress) isOriginal() bool { return p.likeness() == original }

func (p *progress) isEmptied() bool { return p.likeness() == emptied }

func (p *progress) isRecreated() bool { return p.likeness() == recreated }

func (p *progress) likeness() likeness {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.is
}

// foundEmpty records that the stream is empty. A later record shows whether it is another stream.
func (p *progress) foundEmpty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.is = emptied
}

// foundRecreated records that the stream is not the one that was read, and returns for how long
// this has been known. known is false if the stream was rewound meanwhile.
func (p *progress) foundRecreated(generation int) (since time.Duration, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gen != generation {
		return 0, false
	}
	if p.is != recreated {
		p.is, p.recreatedAt = recreated, time.Now()
	}
	return time.Since(p.recreatedAt), true
}

// endsBelow records whether the stream ends below the last folded record, and returns for how long
// it has.
func (p *progress) endsBelow(below bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !below {
		p.belowSince = time.Time{}
		return 0
	}
	if p.belowSince.IsZero() {
		p.belowSince = time.Now()
	}
	return time.Since(p.belowSince)
}

// lag returns how far the view is behind the stream.
func (p *progress) lag(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lateness.lag(now, p.state == stateRunning)
}

// stalledFor returns the time since a record was folded, while there are more to fold.
func (p *progress) stalledFor(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == stateRunning {
		return 0
	}
	return min(now.Sub(p.lateness.caughtUpAt), now.Sub(p.lateness.foldedAt))
}

func (p *progress) hasRead(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == stateRunning && p.end.known && p.end.askedAt.After(since) && p.position >= p.end.last
}

func (p *progress) asks() (generation int, connectedAt time.Time, asks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.state.connected() || p.end.asking {
		return 0, time.Time{}, false
	}
	p.end.asking = true
	return p.gen, p.end.connectedAt, true
}

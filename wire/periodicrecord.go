package wire

import "slices"

// KindPeriodic is the kind of the definitions of periodic jobs.
const KindPeriodic = "periodic"

// Outcomes of ticks.
const (
	TickMade    = "made"    // a job was enqueued
	TickSkipped = "skipped" // no job was enqueued; Why says why
	TickRun     = "run"     // no tick: a user asked for a job
	TickVoid    = "void"    // no tick: skipped ticks after this time have no outcome any more
)

// Why a tick was skipped.
const (
	WhyMissed  = "missed"  // it was late by more than the grace
	WhyOverlap = "overlap" // the job of the last tick was waiting
	WhyPaused  = "paused"
	WhyExcept  = "except"  // its date is an exception
	WhyAsked   = "asked"   // a user asked for it
	WhyRefused = "refused" // no job can be made of the definition
)

// Tick is the outcome of a tick of a periodic job, or of a run of skipped ticks.
type Tick struct {
	Periodic string  `json:"periodic,omitempty"`
	Tick     int64   `json:"tick"`           // seconds since 1970; the last one of a run
	From     int64   `json:"from,omitempty"` // the first one of a run
	Count    int64   `json:"count,omitempty"`
	Outcome  string  `json:"outcome"`
	Why      string  `json:"why,omitempty"`
	JID      string  `json:"jid,omitempty"`
	By       *int64  `json:"by,omitempty"` // offset of the entry in scheduled_jobs
	At       float64 `json:"at,omitempty"` // when it was decided; in the journal the record says it
	Actor    string  `json:"actor,omitempty"`
}

// PeriodicJob is what is known of a periodic job: the layers of its definition and its newest
// ticks.
type PeriodicJob struct {
	Name    string                  `json:"name"`
	Layers  map[string]DefinedLayer `json:"layers"`
	Through int64                   `json:"through"`          // all ticks up to here have an outcome
	Recent  []Tick                  `json:"recent,omitempty"` // the newest, by tick
}

// PeriodicPiece replaces what is known of the periodic jobs whose names are after one name, up to
// and with another. An empty Through means to the last.
type PeriodicPiece struct {
	After   string        `json:"after,omitempty"`
	Through string        `json:"through,omitempty"`
	Jobs    []PeriodicJob `json:"jobs"`
}

// Decided reports whether a tick has an outcome.
func (j *PeriodicJob) Decided(tick int64) bool {
	return tick <= j.Through || slices.ContainsFunc(j.Recent, func(t Tick) bool { return t.Tick == tick && t.IsTick() })
}

// IsTick reports whether it is the outcome of a tick.
func (t *Tick) IsTick() bool { return t.Outcome == TickMade || t.Outcome == TickSkipped }

package answer

import (
	"cmp"
	"encoding/json"

	"github.com/millrace-jobs/millrace/wire"
)

// Limit is a limit. Times are in seconds since 1970.
type Limit struct {
	Name        string                   `json:"name"`
	State       string                   `json:"state"`             // active, paused or incomplete
	Problem     string                   `json:"problem,omitempty"` // incomplete: what is missing
	Definition  json.RawMessage          `json:"definition"`        // all layers, merged
	Layers      map[string]PeriodicLayer `json:"layers"`
	Used        int                      `json:"used"`                   // slots that are held
	Slots       int64                    `json:"slots,omitempty"`        // of all parts that have jobs
	Full        int                      `json:"full"`                   // parts without a free slot
	Waiting     int                      `json:"waiting"`                // jobs that are due and wait
	WaitingMore bool                     `json:"waiting_more,omitempty"` // there are more
	Blocked     int                      `json:"blocked"`                // of these, the jobs that this limit holds back
	Opens       float64                  `json:"opens,omitempty"`        // when its rate lets the next of them begin

	Parts        []LimitPart `json:"parts,omitempty"`          // only of one limit: first those with most jobs waiting
	PartsLeftOff int         `json:"parts_left_off,omitempty"` // parts that are not in the list
}

// GovernedQueue is a governed queue. Times are in seconds since 1970.
type GovernedQueue struct {
	Name        string                   `json:"name"`
	State       string                   `json:"state"` // switching, draining, governed, full, bypassed or suspended
	Since       float64                  `json:"since"`
	Paused      bool                     `json:"paused,omitempty"`
	Definition  json.RawMessage          `json:"definition"` // all layers, merged
	Layers      map[string]PeriodicLayer `json:"layers"`
	Waiting     int                      `json:"waiting"`                // jobs that are due and wait
	WaitingMore bool                     `json:"waiting_more,omitempty"` // there are more
	Out         int                      `json:"out"`                    // jobs that are delivered and have not ended
}

// GovernedPreview is what a definition of a governed queue would mean. What is not known is left
// out.
type GovernedPreview struct {
	Name       string          `json:"name"`
	State      string          `json:"state,omitempty"`   // of a queue that is governed already: its state now
	Definition json.RawMessage `json:"definition"`        // all layers, merged
	Limits     []string        `json:"limits"`            // the names of those that would count its jobs, or some of them
	Ready      *int64          `json:"ready,omitempty"`   // jobs in the queue itself
	Unacked    *int64          `json:"unacked,omitempty"` // jobs that workers have
	Gated      int64           `json:"gated"`             // jobs in jobs.gated
	Scheduled  int64           `json:"scheduled"`
	Retries    int64           `json:"retries"`
	Full       *bool           `json:"full,omitempty"` // with max_waiting: so many jobs are gated that more are refused
}

// LayersOf returns the answer about the layers of a definition.
func LayersOf(layers map[string]wire.DefinedLayer) map[string]PeriodicLayer {
	all := map[string]PeriodicLayer{}
	for name, l := range layers {
		all[name] = PeriodicLayer{Source: l.Source, Value: l.Value, At: l.At, Actor: l.Actor}
	}
	return all
}

// LimitPart is a part of the jobs that a limit counts apart from others, such as those of one key.
type LimitPart struct {
	wire.Group
	Concurrency int64   `json:"concurrency,omitempty"`
	Used        int     `json:"used"`
	Waiting     int     `json:"waiting"`
	Opens       float64 `json:"opens,omitempty"` // when its rate lets the next job begin
}

// Slot is a slot that a job holds.
type Slot struct {
	Slot string  `json:"slot"` // what POST /api/slots/free takes
	JID  string  `json:"jid"`
	At   float64 `json:"at"` // when the job was delivered to its queue
	wire.Group
}

// NewSlot returns the answer about a slot.
func NewSlot(h *wire.HeldSlot) Slot {
	s := wire.Slot{Stream: h.Stream, Offset: h.Offset, JIDTag: h.JID}
	if n := len(h.Fires); n > 0 {
		s.Epoch, s.Seq = h.Fires[n-1].Epoch, h.Fires[n-1].Through
	}
	return Slot{Slot: s.String(), JID: h.JID, At: h.At, Group: h.Group}
}

// Compare orders slots by when their jobs were delivered.
func (s *Slot) Compare(o *Slot) int {
	return cmp.Or(cmp.Compare(s.At, o.At), cmp.Compare(s.Slot, o.Slot))
}

// WhyWaits says why a job waits.
type WhyWaits struct {
	wire.Group
	DueAt  float64    `json:"due_at"`
	Ahead  int        `json:"ahead"` // jobs of its group that are due before it, at most 1,000
	Limits []WaitsFor `json:"limits"`

	// Of a unique job: no leader has decided yet whether it has its key.
	Undecided bool           `json:"undecided,omitempty"`
	Governed  *WaitsForQueue `json:"governed,omitempty"` // if its queue is governed
	Unserved  bool           `json:"unserved,omitempty"` // its queue gets no more jobs because no one takes those that it has
}

// WaitsForQueue is what a governed queue lets its jobs do.
type WaitsForQueue struct {
	State  string `json:"state"`
	Paused bool   `json:"paused,omitempty"`
	Out    int    `json:"out"`
	Ahead  int64  `json:"ahead"` // how many may be out
}

// WaitsFor is a limit that counts a job.
type WaitsFor struct {
	Limit  string  `json:"limit"`
	Blocks bool    `json:"blocks"`           // it lets no job begin now
	Used   int     `json:"used"`             // slots that are held
	Of     int64   `json:"of,omitempty"`     // slots that there are; left out if the limit has none
	Opens  float64 `json:"opens,omitempty"`  // when its rate lets the next job begin
	Paused bool    `json:"paused,omitempty"` // it is paused
	HeldBy []Slot  `json:"held_by"`          // who holds the slots, at most 100
	wire.Group
}

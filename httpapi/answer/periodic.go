package answer

import (
	"encoding/json"

	"github.com/millrace-jobs/millrace/wire"
)

// PeriodicJob is a periodic job. Times are in seconds since 1970.
type PeriodicJob struct {
	Name       string                   `json:"name"`
	State      string                   `json:"state"`             // active, paused or incomplete
	Problem    string                   `json:"problem,omitempty"` // incomplete: what is missing
	Schedule   string                   `json:"schedule"`          // in words
	Class      string                   `json:"class"`
	Queue      string                   `json:"queue"`
	Definition json.RawMessage          `json:"definition"` // all layers, merged
	Layers     map[string]PeriodicLayer `json:"layers"`
	Next       []int64                  `json:"next"`           // coming ticks
	Last       *wire.Tick               `json:"last,omitempty"` // the newest outcome

	Ticks []wire.Tick `json:"ticks,omitempty"` // only of one job: the newest outcomes, the newest first
}

// PeriodicLayer is one layer of a definition.
type PeriodicLayer struct {
	Source string          `json:"source,omitempty"`
	Value  json.RawMessage `json:"value"`
	At     float64         `json:"at"`
	Actor  string          `json:"actor,omitempty"`
}

// NextTicks are the next ticks of a schedule, in seconds since 1970.
type NextTicks struct {
	Next []int64 `json:"next"`
}

// RunJob is the job of a periodic job that was enqueued by hand.
type RunJob struct {
	JID string `json:"jid"`
}

// SkippedTick is a coming tick that is skipped.
type SkippedTick struct {
	Tick int64 `json:"tick"`
}

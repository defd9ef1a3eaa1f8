package wire

import (
	"encoding/json"
	"fmt"
	"time"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Types of the records of job_metrics_rollups.
const (
	TypeRollup = "rollup" // sums of a range of job_metrics
	TypeDeploy = "deploy" // a mark in all charts
)

// Rollup is one record of job_metrics_rollups. Type says which members matter.
type Rollup struct {
	Type   string `json:"type"`
	Format int    `json:"format"`

	// rollup: the records of job_metrics from the offset From up to, but not including, To.
	// Generation counts how often that stream was created again.
	Generation int64       `json:"generation,omitempty"`
	From       int64       `json:"from,omitempty"`
	To         int64       `json:"to,omitempty"`
	Rows       []RollupRow `json:"rows,omitempty"`

	// deploy
	At    float64 `json:"at,omitempty"`
	Label string  `json:"label,omitempty"`
	Actor string  `json:"actor,omitempty"`
}

// RollupRow is what one class did in one queue in one minute. Class and Queue are empty in the row
// for all that exceeds the limit on names.
type RollupRow struct {
	Minute    int64            `json:"minute"` // its beginning, in seconds since 1970
	Class     string           `json:"class"`
	Queue     string           `json:"queue"`
	Success   int64            `json:"success,omitempty"`
	Failed    int64            `json:"failed,omitempty"`
	Dead      int64            `json:"dead,omitempty"`
	Discarded int64            `json:"discarded,omitempty"`
	Expired   int64            `json:"expired,omitempty"`
	TotalUS   int64            `json:"total_us,omitempty"` // sum of all run times
	MaxUS     int64            `json:"max_us,omitempty"`
	Run       []byte           `json:"run,omitempty"`      // sketch of run times, in microseconds
	Wait      []byte           `json:"wait,omitempty"`     // sketch of wait times, in microseconds
	Attempts  []int64          `json:"attempts,omitempty"` // ended at attempt 1, 2, …
	Errors    map[string]int64 `json:"errors,omitempty"`
}

// Message returns the record as a message.
func (r Rollup) Message(now time.Time) (Message, error) {
	r.Format = Format
	body, err := json.Marshal(r)
	if err != nil {
		return Message{}, fmt.Errorf("wire: roll-up: %w", err)
	}
	return Message{Key: Rollups, Type: r.Type, Timestamp: now, Body: body}, nil
}

// ParseRollup parses a record of job_metrics_rollups.
func ParseRollup(body []byte) (Rollup, error) {
	var r Rollup
	if err := shared.CheckRecord(body); err != nil {
		return r, err
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("roll-up: %w", err)
	}
	switch {
	case r.Type == TypeRollup && (r.From < 0 || r.To <= r.From):
		return r, fmt.Errorf("roll-up covers no records: from %d to %d", r.From, r.To)
	case r.Type == TypeDeploy && r.Label == "":
		return r, fmt.Errorf("member \"label\" is missing")
	case r.Type != TypeRollup && r.Type != TypeDeploy:
		return r, fmt.Errorf("member \"type\" must be rollup or deploy")
	}
	return r, nil
}

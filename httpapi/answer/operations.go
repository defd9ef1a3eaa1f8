package answer

import "github.com/millrace-jobs/millrace/wire"

// Operation is a bulk operation. Rate is jobs a second.
type Operation struct {
	ID       string       `json:"id"`
	Action   string       `json:"action"`
	Set      string       `json:"set"`
	Filter   *wire.Filter `json:"filter,omitempty"`
	AsOf     *int64       `json:"as_of,omitempty"`
	Expected *int64       `json:"expected_count,omitempty"`
	At       *float64     `json:"at,omitempty"`
	Rate     float64      `json:"rate,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Actor    string       `json:"actor,omitempty"`
	Undoes   string       `json:"undoes,omitempty"`
	UndoneBy string       `json:"undone_by,omitempty"`
	Failure  *Failure     `json:"error_group,omitempty"` // of the fingerprint in the filter, if it is known

	State     string  `json:"state"`
	StartedAt float64 `json:"started_at"`
	EndedAt   float64 `json:"ended_at,omitempty"`
	Total     *int64  `json:"total,omitempty"` // where it was counted
	Done      int64   `json:"done"`
	Failed    int64   `json:"failed"`
	LastError string  `json:"last_error,omitempty"`

	Skipped *int64      `json:"skipped,omitempty"` // of an undo
	Skips   []wire.Skip `json:"skips,omitempty"`
}

// BegunOperation is a bulk operation that has begun.
type BegunOperation struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	Undoes string `json:"undoes,omitempty"`
}

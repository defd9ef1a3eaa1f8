package httpapi

import "time"

// limits bound what one call may cost. Tests change them.
type limits struct {
	searched int64         // entries that are looked at
	tally    time.Duration // for counting on, once the page is full
	fetch    time.Duration // for reading large records
}

const (
	maxSearched = 100_000                // entries that one call looks at
	maxTally    = 150 * time.Millisecond // for which a call may count on, once its page is full
)

package demo

import "sync/atomic"

// Counts is what was done since Run began.
type Counts struct {
	Enqueued  int64 // jobs published, also those for later
	Processed int64 // done without a failure
	Failed    int64 // attempts that failed
}

type counters struct {
	enqueued, processed, failed, busy atomic.Int64
}

// Counts can be asked at any time.
func (d *Demo) Counts() Counts {
	return Counts{d.counts.enqueued.Load(), d.counts.processed.Load(), d.counts.failed.Load()}
}

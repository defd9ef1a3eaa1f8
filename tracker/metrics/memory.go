package metrics

import "sync"

// memory is what the fold shares with its readers: how far everything is counted, and the data that
// the store does not have yet.
type memory struct {
	mu    sync.Mutex
	state State
	shown State // as it was written last
	sums  sums
	runs  runLog
}

// State is how far everything is counted.
type State struct {
	Generation int64   `json:"generation"` // how often job_metrics was created again
	Through    int64   `json:"through"`    // below this offset everything is counted
	Rolled     int64   `json:"rolled"`     // below this offset everything is in roll-ups
	Raw        bool    `json:"raw"`        // records of this generation were counted themselves
	Segment    segment `json:"piece"`
}

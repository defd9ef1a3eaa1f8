package wire

import "time"

// Enqueued is the record of a job that was enqueued under a key. The same key means the same job.
type Enqueued struct {
	Key string  `json:"key"`
	Sum string  `json:"sum"` // checksum of the request
	JID string  `json:"jid"`
	At  float64 `json:"at"` // time of the request
}

// EnqueuedFor is how long a key is remembered.
const EnqueuedFor = 24 * time.Hour

package wire

// What became of an attempt.
const (
	MetricSuccess   = "success"
	MetricFailed    = "failed"    // it will be tried again
	MetricDead      = "dead"      // it failed for the last time
	MetricDiscarded = "discarded" // it was not run, or failed, and is dropped
	MetricExpired   = "expired"   // it came too late to be run
)

// MetricRecord is a record of job_metrics as it is written: of one attempt.
type MetricRecord struct {
	Type           string  `json:"type"`
	Timestamp      float64 `json:"timestamp"`
	JobClass       string  `json:"job_class"`
	Queue          string  `json:"queue"`
	DurationMS     int64   `json:"duration_ms"`
	Status         string  `json:"status"`
	WorkerIdentity string  `json:"worker_identity"`
	JID            string  `json:"jid"`
	WaitMS         *int64  `json:"wait_ms,omitempty"`
	Attempt        int     `json:"attempt"`
	ErrorClass     string  `json:"error_class,omitempty"`
}

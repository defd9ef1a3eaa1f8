package wire

// Results of an attempt.
const (
	MetricSuccess   = "success"
	MetricFailed    = "failed"    // it will be retried
	MetricDead      = "dead"      // it failed for the last time
	MetricDiscarded = "discarded" // it was not run, or failed, and is discarded
	MetricExpired   = "expired"   // it was not run, because it had expired
)

// MetricRecord is a record of job_metrics, about one attempt, as workers write it.
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

package answer

// Counts are how many attempts ended how.
type Counts struct {
	Success   int64 `json:"success"`
	Failed    int64 `json:"failed"`
	Dead      int64 `json:"dead"`
	Discarded int64 `json:"discarded"`
	Expired   int64 `json:"expired"`
}

// Spread is the distribution of spans of time.
type Spread struct {
	Count   int64   `json:"count"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
	Buckets []int64 `json:"buckets"` // how many are within each of bounds_ms, and above the last
}

// JobSum is what ended in some span of time.
type JobSum struct {
	Counts
	Total float64 `json:"total_ms"`
	Max   float64 `json:"max_ms"`
	Run   *Spread `json:"run"`  // null: not known
	Wait  *Spread `json:"wait"` // null: not known

	Attempts []int64 `json:"attempts"` // jobs that ended at their first attempt, their second, …
}

// JobPoint is what ended in one step.
type JobPoint struct {
	At float64 `json:"at"`
	JobSum
}

// NamedSum is what ended of one class, or in one queue.
type NamedSum struct {
	Name  string `json:"name"`
	Other bool   `json:"other,omitempty"` // all above the limit of names
	JobSum
}

// JobFailure is how many attempts of a class failed with an error.
type JobFailure struct {
	Class string `json:"class"`
	Error string `json:"error"`
	Count int64  `json:"count"`
}

// JobMetrics is what was counted in a range of time.
type JobMetrics struct {
	From     float64      `json:"from"`
	To       float64      `json:"to"`
	Step     float64      `json:"step_seconds"`
	Older    bool         `json:"older_than_kept,omitempty"`
	Bounds   []float64    `json:"bounds_ms"`
	Total    JobSum       `json:"total"`
	Series   []JobPoint   `json:"series"`
	Classes  []NamedSum   `json:"classes"`
	Queues   []NamedSum   `json:"queues"`
	Failures []JobFailure `json:"failures"`
	Deploys  []Deploy     `json:"deploys"`
}

// Deploy is a mark in all charts.
type Deploy struct {
	Label string  `json:"label"`
	At    float64 `json:"at"`
	Actor string  `json:"actor,omitempty"`
}

// QueueThroughput is how many jobs ended in each queue, step by step.
type QueueThroughput struct {
	From   float64       `json:"from"`
	To     float64       `json:"to"`
	Step   float64       `json:"step_seconds"`
	Older  bool          `json:"older_than_kept,omitempty"`
	Queues []QueueCounts `json:"queues"`
}

// QueueCounts is how many jobs ended in one queue.
type QueueCounts struct {
	Name   string  `json:"name"`
	Other  bool    `json:"other,omitempty"` // all above the limit of names
	Counts []int64 `json:"counts"`          // of each step, the first beginning at from
}

// DueTimes is how many entries of a set are due when.
type DueTimes struct {
	Set      string  `json:"set"`
	From     float64 `json:"from"`
	Step     int64   `json:"step"`   // seconds
	Counts   []int64 `json:"counts"` // of each step, the first beginning at from
	Before   int64   `json:"before"` // entries that were due before from
	After    int64   `json:"after"`  // entries that are due later, or were not looked at
	Complete bool    `json:"complete"`
}

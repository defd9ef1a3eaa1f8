package answer

import "github.com/millrace-jobs/millrace/wire"

// Process is a worker process.
type Process struct {
	Identity    string            `json:"identity"`
	Hostname    string            `json:"hostname"`
	PID         int64             `json:"pid"`
	Tag         string            `json:"tag"`
	Version     string            `json:"version"`
	State       string            `json:"state"`
	HeardAt     float64           `json:"heard_at"`
	Silent      float64           `json:"silent_seconds"`
	Beat        float64           `json:"beat"`       // by the worker's own clock
	StartedAt   *float64          `json:"started_at"` // null: not reported
	Concurrency int64             `json:"concurrency"`
	Busy        int64             `json:"busy"`
	RSSKB       int64             `json:"rss_kb"`
	RTTMicros   int64             `json:"rtt_us"`
	Queues      []string          `json:"queues"`
	Weights     map[string]int64  `json:"weights,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Lanes       []wire.Lane       `json:"lanes,omitempty"`
	Work        []RunningJob      `json:"work"`
	Cut         bool              `json:"cut,omitempty"` // parts of the heartbeat are left out
}

// RunningJob is a job that a process runs.
type RunningJob struct {
	JID       string   `json:"jid"`
	Class     string   `json:"class"`
	Queue     string   `json:"queue"`
	StartedAt *float64 `json:"started_at"` // null: not reported
	Usual     *float64 `json:"usual_ms"`   // how long its class usually runs; null: not known
	Stuck     bool     `json:"stuck,omitempty"`
}

// RunningOn is a job, and the process that reports that it runs it.
type RunningOn struct {
	Identity string  `json:"identity"`
	State    string  `json:"state"` // of the process
	HeardAt  float64 `json:"heard_at"`
	RunningJob
}

// WorkerTotals are the sums of all worker processes.
type WorkerTotals struct {
	Running     int            `json:"running"` // all that are not lost
	States      map[string]int `json:"states"`
	Concurrency int64          `json:"concurrency"`
	Busy        int64          `json:"busy"`
	RSSKB       int64          `json:"rss_kb"`
}

// LiveProcesses are the worker processes as viewers see them.
type LiveProcesses struct {
	WorkerTotals
	Items []Process `json:"items"` // null: there are too many
}

// Asked is a request that was sent to worker processes.
type Asked struct {
	ID       string `json:"id"`
	Identity string `json:"identity,omitempty"` // of the process that was found; * stands for all
}

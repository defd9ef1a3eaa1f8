package answer

import "time"

// Overview is the state of everything on one page.
type Overview struct {
	Product   string                    `json:"product_name"`
	Version   string                    `json:"product_version"`
	VHost     string                    `json:"vhost"`
	Now       float64                   `json:"now"` // the clock of the sidecar's machine
	Broker    BrokerState               `json:"broker"`
	Leader    LeaderState               `json:"leader"`
	Scheduler Scheduler                 `json:"scheduler"`
	Sets      map[string]SetSize        `json:"sets"`
	Overdue   float64                   `json:"scheduled_overdue_seconds"` // of the oldest due entry
	Views     ViewState                 `json:"views"`
	Rejected  map[string]RejectedCounts `json:"rejected"`
	Journal   JournalState              `json:"journal"`
	Processes WorkerTotals              `json:"processes"`
	Queues    *QueueTotal               `json:"queues,omitempty"` // nil: no client has looked
	Jobs      JobTotals                 `json:"jobs"`
}

// BrokerState is what is known of the broker.
type BrokerState struct {
	Connected bool   `json:"connected"`
	Product   string `json:"product"`
	Version   string `json:"version"`
}

// LeaderState is the newest leader that the journal has.
type LeaderState struct {
	Identity string  `json:"identity"`
	Epoch    int64   `json:"epoch"` // -1: there was none
	Since    float64 `json:"since"`
}

// SetSize is how large a set is.
type SetSize struct {
	Total  int64   `json:"total"`
	Bytes  int64   `json:"bytes"` // of the records
	AsOf   int64   `json:"as_of"`
	Max    int     `json:"max,omitempty"`             // how many are kept
	MaxAge float64 `json:"max_age_seconds,omitempty"` // how long they are kept
}

// ViewState is how far the view is.
type ViewState struct {
	CaughtUp bool          `json:"caught_up"`
	Lag      float64       `json:"lag_seconds"`
	Streams  []StreamState `json:"streams"`
}

// StreamState is how far the view is with a stream.
type StreamState struct {
	Stream    string  `json:"stream"`
	Position  int64   `json:"position"`
	CaughtUp  bool    `json:"caught_up"`
	Lag       float64 `json:"lag_seconds"`
	Recreated bool    `json:"recreated,omitempty"`
	Fault     string  `json:"fault,omitempty"`
}

// RejectedCounts is how many records of a stream could not be taken in.
type RejectedCounts struct {
	Kept int64 `json:"kept"`
	Ever int64 `json:"ever"`
}

// JournalState is what leaders did, as the journal has it.
type JournalState struct {
	Fired      int64            `json:"fired"`
	Buried     int64            `json:"buried"`
	Duplicates int64            `json:"duplicates"`
	Void       map[string]int64 `json:"void_records"`
	Held       map[string]int64 `json:"held"` // up to which offset, by stream, after a gap
}

// QueueTotal is how many job queues there are.
type QueueTotal struct {
	Total int `json:"total"`
}

// JobTotals count the attempts of jobs.
type JobTotals struct {
	ProcessedToday int64 `json:"processed_today"` // since midnight UTC
	FailedToday    int64 `json:"failed_today"`
	Processed      int64 `json:"processed"`
	Failed         int64 `json:"failed"`
}

// Scheduler is the part in leadership of the sidecar that answers.
type Scheduler struct {
	Leader      bool          `json:"leader"`
	Phase       string        `json:"phase"`
	Epoch       int64         `json:"epoch"` // -1: it does not lead
	Since       time.Time     `json:"since"` // when the phase began
	Unconfirmed int           `json:"unconfirmed"`
	Overdue     int           `json:"overdue"`                 // due entries that wait for room, at most 1,024
	Blocked     string        `json:"blocked,omitempty"`       // why the broker takes no publishes
	Gap         string        `json:"gap,omitempty"`           // the journal may have lost records
	Orphaned    bool          `json:"orphaned"`                // the holder of the lock does not lead
	OrphanCause string        `json:"orphan_cause,omitempty"`  // why, in words
	OrphanCure  string        `json:"orphan_remedy,omitempty"` // what to do about it
	Held        []HeldQueue   `json:"held,omitempty"`
	Lacks       string        `json:"lacks,omitempty"` // why nothing can be fired
	Degraded    []Degradation `json:"degraded,omitempty"`
	Accepts     bool          `json:"accepts"` // clients can publish jobs
	LastError   string        `json:"last_error,omitempty"`
	LastLate    time.Duration `json:"last_late"` // how late the newest fire was, in nanoseconds
	Counters    Counters      `json:"counters"`
}

// HeldQueue is a queue that takes no jobs now.
type HeldQueue struct {
	Queue  string    `json:"queue"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"` // when it is tried again
}

// Degradation is something that fails, and is not needed to fire jobs.
type Degradation struct {
	Subject string    `json:"subject"`
	Problem string    `json:"problem"`
	Costs   string    `json:"costs"`          // what does not work meanwhile
	Node    string    `json:"node,omitempty"` // the node that is away, if that is known
	Since   time.Time `json:"since"`
}

// Counters count what a sidecar did since it started.
type Counters struct {
	Epochs       int64 `json:"epochs"`
	Fired        int64 `json:"fired"`
	Returned     int64 `json:"returned"`
	Refused      int64 `json:"refused"`
	DeadLettered int64 `json:"dead_lettered"`
	Commands     int64 `json:"commands"`
	Lost         int64 `json:"lost_connections"`
}

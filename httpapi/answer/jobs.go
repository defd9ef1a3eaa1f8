package answer

import "encoding/json"

// Enqueued is what became of a job that a client sent: its id, or an error.
type Enqueued struct {
	JID    string `json:"jid,omitempty"`
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`

	// Of a unique job: the job that has its key, which is the one with the jid above.
	DuplicateOf string `json:"duplicate_of,omitempty"`
	// No leader has decided yet whether the job has its key.
	Undecided bool `json:"undecided,omitempty"`
}

// UniqueKey is that a job has the key of unique jobs.
type UniqueKey struct {
	Hash  string  `json:"hash"`
	Key   string  `json:"key,omitempty"` // if the producer gave one
	JID   string  `json:"jid"`
	State string  `json:"state"`           // waiting, delivered, retry or period
	Since float64 `json:"since,omitempty"` // seconds since 1970
	Until float64 `json:"until,omitempty"` // of a period
}

// Entry is what the commands show of an item in a list of jobs. The item itself is the stored
// record byte for byte, with the member millrace.
type Entry struct {
	JID          string `json:"jid"`
	ErrorClass   string `json:"error_class"`
	ErrorMessage string `json:"error_message"`
	Job          struct {
		JID  string          `json:"jid"`
		Args json.RawMessage `json:"args"`
	} `json:"job"`
	Millrace struct {
		Set     string  `json:"set"` // only where entries of one job are listed
		Offset  int64   `json:"offset"`
		At      float64 `json:"at"`
		Queue   string  `json:"queue"`
		Class   string  `json:"class"`
		Attempt int     `json:"attempt"`
	} `json:"millrace"`
}

// Timeline is where a job is, and what happened to it.
type Timeline struct {
	JID       string            `json:"jid"`
	Entries   []json.RawMessage `json:"entries"` // pending now: each is an Entry
	Running   []RunningOn       `json:"running,omitempty"`
	Leases    []JobLease        `json:"leases,omitempty"`
	Events    []JobEvent        `json:"events"`         // what was done to it, the newest first
	Runs      []Run             `json:"runs,omitempty"` // the newest first
	Job       json.RawMessage   `json:"job,omitempty"`  // as it was last sent, if it has no entry
	OlderThan bool              `json:"older_than_kept"`
}

// JobLease is a lease of the job of a timeline.
type JobLease struct {
	ID      string  `json:"id"`
	Until   float64 `json:"until"`
	Queue   string  `json:"queue"`
	Class   string  `json:"class"`
	Attempt int     `json:"attempt"` // from 1
}

// JobEvent is something that was done to a job.
type JobEvent struct {
	At        float64     `json:"at"`
	What      string      `json:"what"`
	Record    int64       `json:"record"` // the journal's, by its offset
	Set       string      `json:"set,omitempty"`
	Offset    *int64      `json:"offset,omitempty"` // of the entry in the stream of its set
	Actor     string      `json:"actor,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Operation string      `json:"operation,omitempty"`
	Identity  string      `json:"identity,omitempty"` // cancelled: of the process that was asked
	Other     string      `json:"other,omitempty"`    // duplicate, replaced: the jid of the job that has the key
	Changes   []JobChange `json:"changes,omitempty"`  // changed: what
}

// JobChange is a member of a job before and after a change, each as JSON text, byte for byte.
type JobChange struct {
	Member string `json:"member"`
	Was    string `json:"was"`
	Is     string `json:"is"`
}

// Run is an attempt that a worker reported. At is when it ended.
type Run struct {
	At       float64  `json:"at"`
	JID      string   `json:"jid"`
	Class    string   `json:"class"`
	Queue    string   `json:"queue"`
	Status   string   `json:"status"`
	Duration *float64 `json:"duration_ms"` // null: not reported
	Wait     *float64 `json:"wait_ms"`
	Attempt  int64    `json:"attempt"` // 0: not reported
	Worker   string   `json:"worker,omitempty"`
	Error    string   `json:"error_class,omitempty"`
}

// Runs are attempts, and how long they are kept.
type Runs struct {
	History[Run]
	MaxAge float64 `json:"max_age_seconds,omitempty"`
}

// Lease is a job that a worker took over HTTP.
type Lease struct {
	ID      string          `json:"id"`
	Until   float64         `json:"until"`
	JID     string          `json:"jid"`
	Class   string          `json:"class"`
	Queue   string          `json:"queue"`
	Attempt int             `json:"attempt"` // from 1
	RanOut  int             `json:"ran_out"` // how many leases of the job did before
	Job     json.RawMessage `json:"job"`
}

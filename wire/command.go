package wire

import (
	"encoding/json"
	"time"
)

// Command is a request to the leader.
type Command struct {
	ID      string          `json:"id,omitempty"`
	Command string          `json:"command"`
	Stream  string          `json:"stream,omitempty"`
	JID     string          `json:"jid,omitempty"`
	Offset  *int64          `json:"offset,omitempty"` // picks one of several entries with the jid
	Changes json.RawMessage `json:"changes,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Actor   string          `json:"actor,omitempty"` // counts only from Millrace's own user

	Queue string `json:"queue,omitempty"` // pause, resume, move-type

	Type   string  `json:"type,omitempty"`    // move-type: classic or quorum
	Within float64 `json:"within,omitempty"`  // move-type: seconds to wait for unacked jobs
	DryRun bool    `json:"dry_run,omitempty"` // move-type, define: only report what it would do

	Key string          `json:"key,omitempty"` // enqueue: the same key means the same job; free-key: its hash
	Job json.RawMessage `json:"job,omitempty"` // enqueue
	At  *float64        `json:"at,omitempty"`  // enqueue: when the job is due; nil means now

	Bulk *Operation `json:"operation,omitempty"` // operate, cancel

	Noted *Noted `json:"noted,omitempty"` // note

	Definitions *Definitions `json:"definitions,omitempty"` // define
	Periodic    string       `json:"periodic,omitempty"`    // forget, run, skip, pause, resume: name of a periodic job
	Limit       string       `json:"limit,omitempty"`       // forget, pause, resume: name of a limit
	Governed    string       `json:"governed,omitempty"`    // forget, pause, resume: name of a governed queue
	Layer       string       `json:"layer,omitempty"`       // forget: empty means all
	Tick        *int64       `json:"tick,omitempty"`        // skip: nil means the next one

	Slot    string `json:"slot,omitempty"`    // claim, free
	Process string `json:"process,omitempty"` // claim: identity of the worker process

	Operation string     `json:"-"` // id of the bulk operation; only the leader sets it
	Move      *PauseMove `json:"-"` // pause, resume: for a move of type; only the leader sets it
}

const (
	// CommandTTL is how long a command waits for a leader.
	CommandTTL = 5 * time.Second
	// LeaderWait is how long a new leader waits if the end of the earlier leader is not known. The
	// earlier leader stops publishing before that.
	LeaderWait = 3500 * time.Millisecond
)

// LeaderPing returns a ping with which a sidecar finds out whether it has the lock. It asks for no
// answer.
func LeaderPing(id string) Message {
	return Message{Key: LeaderInbox, CorrelationID: id, Body: []byte(`{"command":"ping"}`)}
}

// Statuses of a reply, as in the REST API.
const (
	StatusOK          = 200
	StatusCreated     = 201
	StatusAccepted    = 202
	StatusDone        = 204
	StatusBad         = 400
	StatusNotFound    = 404
	StatusConflict    = 409
	StatusDrifted     = 412
	StatusUnavailable = 503
	StatusUnknown     = 504
)

// Reply is the answer to a command.
type Reply struct {
	Status   int       `json:"status"`
	Error    string    `json:"error,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Happened *Happened `json:"happened,omitempty"`
	Offsets  []int64   `json:"offsets,omitempty"`  // of all entries with the jid, if several
	Entry    *int64    `json:"entry,omitempty"`    // offset of the entry after a change or undo
	JID      string    `json:"jid,omitempty"`      // enqueue: of the job
	Paused   []string  `json:"paused,omitzero"`    // state: the paused queues
	Move     *TypeMove `json:"move,omitempty"`     // move-type: what it does or would do
	Repeated bool      `json:"repeated,omitempty"` // the command was carried out before

	Defined *DefineResult `json:"defined,omitempty"` // define: what it did or would do
	Tick    int64         `json:"tick,omitempty"`    // skip: which one

	Claim string `json:"claim,omitempty"` // claim: run or drop

	DuplicateOf string `json:"duplicate_of,omitempty"` // to the publisher of a unique job: the jid that stays
	// State: what earlier epochs fired must be claimed.
	ClaimBelow int64 `json:"claim_below,omitempty"`
}

// Happened is what became of an entry that is no longer pending.
type Happened struct {
	What   string  `json:"what"` // an op or the type of a journal record
	At     float64 `json:"at,omitempty"`
	Offset int64   `json:"offset"` // of the entry
	Record int64   `json:"record"` // offset of the journal record
	Actor  string  `json:"actor,omitempty"`

	Other string `json:"other,omitempty"` // duplicate, replaced: the jid of the job that has the key
}

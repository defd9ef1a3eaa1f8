package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Commands to the leader.
const (
	CommandTrigger = "trigger"
	CommandRetry   = "retry"
	CommandKill    = "kill"
	CommandDelete  = "delete"
	CommandRelease = "release" // held entries fire
	CommandDiscard = "discard" // held entries that are due are deleted, the others are released
	CommandPing    = "ping"    // answered at once: somebody leads
	CommandDismiss = "dismiss" // a rejected record leaves the list
	CommandChange  = "change"
	CommandUndo    = "undo"
	CommandEnqueue = "enqueue"
	CommandState   = shared.CommandState
	CommandOperate = "operate" // the same to many entries
	CommandCancel  = "cancel"  // an operation ends where it is
	CommandPause   = "pause"   // nobody takes jobs of a queue
	CommandResume  = "resume"  // workers take them again
	CommandNote    = "note"    // a sidecar is about to do something past the leader

	CommandMoveType = "move-type" // a queue becomes one of another type
)

// Command asks the leader to do something.
type Command struct {
	ID      string          `json:"id,omitempty"`
	Command string          `json:"command"`
	Stream  string          `json:"stream,omitempty"`
	JID     string          `json:"jid,omitempty"`
	Offset  *int64          `json:"offset,omitempty"` // picks one of several entries with the jid
	Changes json.RawMessage `json:"changes,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Actor   string          `json:"actor,omitempty"` // believed only of the sidecar's own account

	Queue string `json:"queue,omitempty"` // pause, resume, move-type

	Type   string  `json:"type,omitempty"`    // move-type: classic or quorum
	Within float64 `json:"within,omitempty"`  // move-type: how many seconds jobs that are unacked are waited for
	DryRun bool    `json:"dry_run,omitempty"` // move-type: only say what it would do

	Key string          `json:"key,omitempty"` // enqueue: the same key means the same job
	Job json.RawMessage `json:"job,omitempty"` // enqueue
	At  *float64        `json:"at,omitempty"`  // enqueue: when it is due; now if not given

	Bulk *Operation `json:"operation,omitempty"` // operate, cancel

	Noted *Noted `json:"noted,omitempty"` // note

	Operation string     `json:"-"` // the bulk operation that it is part of; only the leader says so
	Move      *PauseMove `json:"-"` // pause, resume: because a queue is moved to another type; only the leader says so
}

// maxCommand is the largest command that is read, in bytes.
const maxCommand = 1 << 20

// commandStreams says what may be commanded where.
var commandStreams = map[string][]string{
	CommandTrigger: {ScheduledJobs},
	CommandRetry:   {Retries, DeadJobs},
	CommandKill:    {ScheduledJobs, Retries, Gated},
	CommandDelete:  EntryStreams,
	CommandChange:  EntryStreams,
	CommandUndo:    EntryStreams,
	CommandRelease: nil,
	CommandDiscard: nil,
	CommandDismiss: nil,
	CommandPing:    nil,
	CommandOperate: nil,
	CommandCancel:  nil,
	CommandPause:   nil,
	CommandResume:  nil,
	CommandNote:    nil,

	CommandMoveType: nil,

	CommandState:   nil,
	CommandEnqueue: nil,
}

// ParseCommand reads a command and checks that it can be carried out.
func ParseCommand(body []byte) (Command, error) {
	var c Command
	if len(body) > maxCommand {
		return c, fmt.Errorf("command has %d bytes, at most %d are read", len(body), maxCommand)
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("command is not valid: %w", err)
	}
	if c.ID != ASCII(c.ID) { // headers carry it, and a repeat is known by it
		return c, fmt.Errorf("command id must be at most %d characters of printable ASCII", shared.MaxShort)
	}
	return c, c.check()
}

func (c Command) check() error {
	streams, known := commandStreams[c.Command]
	if !known {
		return fmt.Errorf("command %q is not known: use trigger, retry, kill, delete, change or undo", c.Command)
	}
	if c.Command == CommandOperate || c.Command == CommandCancel {
		return c.checkBulk()
	}
	if c.Command == CommandEnqueue {
		return c.checkEnqueue()
	}
	if c.Command == CommandNote {
		return c.Noted.check()
	}
	if c.aboutQueue() {
		return c.checkQueue()
	}
	if streams == nil {
		return c.checkDismiss()
	}
	if c.JID == "" {
		return fmt.Errorf("command %s needs a jid", c.Command)
	}
	if !slices.Contains(streams, c.Stream) {
		return fmt.Errorf("command %s needs a stream: %s", c.Command, strings.Join(streams, " or "))
	}
	if c.Command != CommandChange {
		return nil
	}
	_, err := ParseChanges(c.Stream, c.Changes)
	return err
}

func (c Command) checkBulk() error {
	switch {
	case c.Bulk == nil || c.Command == CommandCancel && c.Bulk.ID == "":
		return fmt.Errorf("command %s needs an operation", c.Command)
	case c.Command == CommandCancel:
		return nil
	case c.ID == "":
		return fmt.Errorf("command %s needs an id, which becomes the operation's", c.Command)
	}
	return c.Bulk.Check()
}

func (c Command) checkDismiss() error {
	if c.Command == CommandDismiss && (c.Stream == "" || c.Offset == nil) {
		return fmt.Errorf("command %s needs the stream and offset of a rejected record", c.Command)
	}
	return nil
}

const (
	// CommandTTL is how long a command waits for a leader.
	CommandTTL = 5 * time.Second
	// LeaderWait is how long a new leader waits for one whose end nobody has seen. That one falls silent before.
	LeaderWait = 3500 * time.Millisecond
)

// LeaderPing is a ping by which a sidecar finds out whether the lock is its own. It wants no answer.
func LeaderPing(id string) Message {
	return Message{Key: LeaderInbox, CorrelationID: id, Body: []byte(`{"command":"ping"}`)}
}

// Reply statuses, as in REST.
const (
	StatusOK          = 200
	StatusAccepted    = 202
	StatusDone        = 204
	StatusBad         = 400
	StatusNotFound    = 404
	StatusConflict    = 409
	StatusDrifted     = 412
	StatusUnavailable = 503
	StatusUnknown     = 504
)

// Reply answers a command.
type Reply struct {
	Status   int       `json:"status"`
	Error    string    `json:"error,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Happened *Happened `json:"happened,omitempty"`
	Offsets  []int64   `json:"offsets,omitempty"`  // of all entries with the jid, where it is not unique
	Entry    *int64    `json:"entry,omitempty"`    // where the entry stands now that was changed or brought back
	JID      string    `json:"jid,omitempty"`      // enqueue: of the job
	Paused   []string  `json:"paused,omitzero"`    // state: the paused queues
	Move     *TypeMove `json:"move,omitempty"`     // move-type: what it does, or would do
	Repeated bool      `json:"repeated,omitempty"` // the same command was carried out before
}

// Happened is what became of an entry that is no longer there.
type Happened struct {
	What   string  `json:"what"` // an op or a record's type
	At     float64 `json:"at,omitempty"`
	Offset int64   `json:"offset"` // the entry's
	Record int64   `json:"record"` // the journal's record of it
	Actor  string  `json:"actor,omitempty"`
}

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
	CommandRelease = "release" // release held entries
	CommandDiscard = "discard" // delete held entries that are due, and release the others
	CommandPing    = "ping"    // find out whether a sidecar leads
	CommandDismiss = "dismiss" // remove a rejected record from the list
	CommandChange  = "change"
	CommandUndo    = "undo"
	CommandEnqueue = "enqueue"
	CommandState   = shared.CommandState
	CommandOperate = "operate" // begin a bulk operation
	CommandCancel  = "cancel"  // stop a bulk operation where it is
	CommandPause   = "pause"   // stop workers from taking jobs of a queue
	CommandResume  = "resume"  // let workers take them again
	CommandNote    = "note"    // journal an act of a sidecar: see Noted

	CommandMoveType = "move-type" // turn a queue into a queue of another type

	CommandDefine = "define" // set what a source defines
	CommandForget = "forget" // remove a periodic job or a limit, or a layer of it
	CommandRun    = "run"    // enqueue the job of a periodic job now
	CommandSkip   = "skip"   // skip a coming tick

	CommandClaim = shared.CommandClaim
	CommandFree  = "free" // free a slot by hand
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

	Key string          `json:"key,omitempty"` // enqueue: the same key means the same job
	Job json.RawMessage `json:"job,omitempty"` // enqueue
	At  *float64        `json:"at,omitempty"`  // enqueue: when the job is due; nil means now

	Bulk *Operation `json:"operation,omitempty"` // operate, cancel

	Noted *Noted `json:"noted,omitempty"` // note

	Definitions *Definitions `json:"definitions,omitempty"` // define
	Periodic    string       `json:"periodic,omitempty"`    // forget, run, skip, pause, resume: name of a periodic job
	Limit       string       `json:"limit,omitempty"`       // forget, pause, resume: name of a limit
	Layer       string       `json:"layer,omitempty"`       // forget: empty means all
	Tick        *int64       `json:"tick,omitempty"`        // skip: nil means the next one

	Slot    string `json:"slot,omitempty"`    // claim, free
	Process string `json:"process,omitempty"` // claim: identity of the worker process

	Operation string     `json:"-"` // id of the bulk operation; only the leader sets it
	Move      *PauseMove `json:"-"` // pause, resume: for a move of type; only the leader sets it
}

// maxCommand is the largest command that is read, in bytes.
const maxCommand = 1 << 20

// commandStreams lists the commands, with the streams on whose entries they act.
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

	CommandDefine: nil,
	CommandForget: nil,
	CommandRun:    nil,
	CommandSkip:   nil,

	CommandClaim: nil,
	CommandFree:  nil,

	CommandState:   nil,
	CommandEnqueue: nil,
}

// ParseCommand parses a command and checks that it is valid.
func ParseCommand(body []byte) (Command, error) {
	var c Command
	if len(body) > maxCommand {
		return c, fmt.Errorf("command has %d bytes, at most %d are read", len(body), maxCommand)
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return c, fmt.Errorf("command is not valid: %w", err)
	}
	if c.ID != ASCII(c.ID) { // a header carries it, and it identifies a repeat
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
	if c.Command == CommandDefine {
		return c.checkDefine()
	}
	if c.aboutDefinition() {
		return c.checkAboutDefinition()
	}
	if c.Command == CommandClaim || c.Command == CommandFree {
		_, err := ParseSlot(c.Slot)
		return err
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
}

// checkDefine checks the command define.
func (c Command) checkDefine() error {
	d := c.Definitions
	switch {
	case d == nil:
		return fmt.Errorf("command %s needs definitions", c.Command)
	case d.Layer != "" && !slices.Contains(Layers, d.Layer):
		return fmt.Errorf("layer %q is not known: use code, file or operator", Shorten(d.Layer, 40))
	case d.Layer != LayerOperator && (d.Source == "" || d.Source != ASCII(d.Source)):
		return fmt.Errorf("definitions need a source of 1 to %d characters of printable ASCII", shared.MaxShort)
	}
	return d.Check()
}

// checkAboutDefinition checks a command about a periodic job or a limit.
func (c Command) checkAboutDefinition() error {
	if c.Command == CommandForget && c.Layer != "" && !slices.Contains(Layers, c.Layer) {
		return fmt.Errorf("layer %q is not known: use code, file or operator", Shorten(c.Layer, 40))
	}
	if c.Limit != "" {
		return CheckLimitName(c.Limit)
	}
	return CheckPeriodicName(c.Periodic)
}

// aboutDefinition reports whether a command is about one periodic job or one limit.
func (c Command) aboutDefinition() bool {
	switch c.Command {
	case CommandForget, CommandRun, CommandSkip:
		return true
	case CommandPause, CommandResume:
		return c.Periodic != "" || c.Limit != ""
	}
	return false
}

package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

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

	CommandFreeKey: nil,

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
	if c.Command == CommandFreeKey {
		return CheckUniqueHash(c.Key)
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

// checkEnqueue checks the command enqueue.
func (c Command) checkEnqueue() error {
	if c.Key == "" || c.Key != ASCII(c.Key) {
		return fmt.Errorf("command %s needs a key of 1 to %d characters of printable ASCII", CommandEnqueue, shared.MaxShort)
	}
	_, _, err := c.Entry(time.Unix(0, 0), "jid")
	return err
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

// checkAboutDefinition checks a command about a periodic job, a limit or a governed queue.
func (c Command) checkAboutDefinition() error {
	if c.Command == CommandForget && c.Layer != "" && !slices.Contains(Layers, c.Layer) {
		return fmt.Errorf("layer %q is not known: use code, file or operator", Shorten(c.Layer, 40))
	}
	if c.Limit != "" {
		return CheckLimitName(c.Limit)
	}
	if c.Governed != "" {
		return CheckGovernedName(c.Governed)
	}
	return CheckPeriodicName(c.Periodic)
}

// aboutDefinition reports whether a command is about one definition.
func (c Command) aboutDefinition() bool {
	switch c.Command {
	case CommandForget, CommandRun, CommandSkip:
		return true
	case CommandPause, CommandResume:
		return c.Periodic != "" || c.Limit != "" || c.Governed != ""
	}
	return false
}

// checkQueue checks a command about a queue.
func (c Command) checkQueue() error {
	if err := CheckQueueName(c.Queue); err != nil {
		return fmt.Errorf("command %s needs a queue: %w", c.Command, err)
	}
	if c.Command == CommandMoveType {
		return c.checkMoveType()
	}
	return nil
}

// aboutQueue reports whether a command is about a queue.
func (c Command) aboutQueue() bool {
	return slices.Contains([]string{CommandPause, CommandResume, CommandMoveType}, c.Command)
}

func (c Command) checkMoveType() error {
	switch {
	case c.Type != QueueClassic && c.Type != QueueQuorum:
		return fmt.Errorf("command %s needs a type: %s or %s", c.Command, QueueClassic, QueueQuorum)
	case c.ID == "":
		return fmt.Errorf("command %s needs an id", c.Command)
	case c.Within != 0 && (c.Within < MoveWithinLeast.Seconds() || c.Within > MoveWithinMost.Seconds()):
		return fmt.Errorf("command %s: within must be from %.0f to %.0f seconds", c.Command, MoveWithinLeast.Seconds(), MoveWithinMost.Seconds())
	}
	return nil
}

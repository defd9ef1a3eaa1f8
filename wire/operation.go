package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Operation is one action on many entries of one stream: those with some jids, or those that a
// filter matches. An undo reverts another operation.
type Operation struct {
	ID       string   `json:"id"`
	Action   string   `json:"action,omitempty"` // trigger, retry, kill, delete, change or undo
	Stream   string   `json:"stream,omitempty"`
	JIDs     []string `json:"jids,omitempty"`
	Filter   *Filter  `json:"filter,omitempty"`
	AsOf     *int64   `json:"as_of,omitempty"`          // ignores entries with a later first offset
	Expected *int64   `json:"expected_count,omitempty"` // refused if over 1 % more or fewer match
	At       *float64 `json:"at,omitempty"`             // change: the new time
	Rate     float64  `json:"rate,omitempty"`           // most entries per second; 0 for no limit
	Reason   string   `json:"reason,omitempty"`
	Actor    string   `json:"actor,omitempty"`
	Undoes   string   `json:"undoes,omitempty"`  // undo: the operation to undo
	From     int64    `json:"from,omitempty"`    // undo: its first record in the journal
	Through  int64    `json:"through,omitempty"` // undo: its last record in the journal
	UndoneBy string   `json:"-"`                 // the newest undo of this one; set by views

	State     string  `json:"state"` // running, done, cancelled or interrupted
	StartedAt float64 `json:"started_at,omitempty"`
	EndedAt   float64 `json:"ended_at,omitempty"`
	Total     int64   `json:"total,omitempty"` // matching entries, if they were counted
	Done      int64   `json:"done"`            // done entries: its records in the journal
	Failed    int64   `json:"failed"`          // entries on which it failed
	LastError string  `json:"last_error,omitempty"`
	// Everything up to Cursor is done. Cursor is an offset of the stream. In an undo it is an
	// offset of the journal, and with JIDs it counts them.
	Cursor int64  `json:"cursor"`
	Skips  []Skip `json:"skips,omitempty"`

	FirstRecord int64 `json:"first_record,omitempty"` // in which it began; 0 if not known
	LastRecord  int64 `json:"last_record,omitempty"`  // in which it ended
}

// Skip counts the entries that an undo leaves unchanged for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Skipped returns the sum of all Skips.
func (o *Operation) Skipped() (n int64) {
	for _, s := range o.Skips {
		n += s.Count
	}
	return n
}

// States of an operation.
const (
	OperationRunning     = "running"
	OperationDone        = "done"
	OperationCancelled   = "cancelled"
	OperationInterrupted = "interrupted" // its stream was created again
)

// Filter selects entries. An empty field matches all.
type Filter struct {
	Queue string   `json:"queue,omitempty"`
	Class string   `json:"class,omitempty"`
	Error string   `json:"error,omitempty"`
	Tag   string   `json:"tag,omitempty"`
	JID   string   `json:"jid,omitempty"`
	Text  string   `json:"text,omitempty"` // part of the record, in any case of ASCII letters
	Args  string   `json:"args,omitempty"` // a value in the arguments: see SplitArgs
	From  *float64 `json:"from,omitempty"` // from ≤ at < to
	To    *float64 `json:"to,omitempty"`
}

// maxJIDs is how many jids an operation may name.
const maxJIDs = 10_000

// Check returns an error if the operation cannot be carried out.
func (o *Operation) Check() error {
	if o.Action == CommandUndo {
		return o.checkUndo()
	}
	streams := map[string][]string{CommandTrigger: {ScheduledJobs}, CommandRetry: {Retries, DeadJobs}, CommandKill: {ScheduledJobs, Retries, Gated},
		CommandDelete: EntryStreams, CommandChange: {ScheduledJobs, Retries}}[o.Action]
	switch {
	case streams == nil:
		return fmt.Errorf("action %q is not known: use trigger, retry, kill, delete, change or undo", Shorten(o.Action, 40))
	case !slices.Contains(streams, o.Stream):
		return fmt.Errorf("action %s needs the stream %s", o.Action, strings.Join(streams, " or "))
	case (len(o.JIDs) > 0) == (o.Filter != nil):
		return errors.New("an operation needs jids or a filter, one of them; the empty filter means all")
	case len(o.JIDs) > maxJIDs:
		return fmt.Errorf("%d jids are too many, at most %d are taken: use a filter", len(o.JIDs), maxJIDs)
	case slices.Contains(o.JIDs, ""):
		return errors.New("a jid is empty")
	case (o.Action == CommandChange) != (o.At != nil):
		return errors.New("change needs at, the new time, and nothing else does")
	case o.At != nil && (math.IsNaN(*o.At) || *o.At < shared.Earliest || *o.At > shared.MillisAbove):
		return errors.New("at is out of range: it is in seconds since 1970")
	case o.badRate():
		return errRate
	case o.Expected != nil && (*o.Expected < 0 || o.Filter == nil):
		return errors.New("expected_count goes with a filter, and is 0 or more")
	case o.AsOf != nil && *o.AsOf < -1:
		return errors.New("as_of must be what a list gave")
	}
	return o.Filter.check()
}

var errRate = errors.New("rate must be a number above 0: entries a second")

func (o *Operation) badRate() bool { return o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0) }

func (o *Operation) checkUndo() error {
	switch {
	case o.Undoes == "":
		return errors.New("undo needs the id of an operation")
	case len(o.JIDs) > 0 || o.Filter != nil || o.AsOf != nil || o.Expected != nil || o.At != nil:
		return errors.New("undo is about what an operation did: it takes no jids, filter, as_of, expected_count or at")
	case o.badRate():
		return errRate
	}
	return nil
}

func (f *Filter) check() error {
	if f == nil {
		return nil
	}
	for _, text := range []string{f.Queue, f.Class, f.Error, f.Tag, f.JID, f.Text, f.Args} {
		if !utf8.ValidString(text) {
			return errors.New("the filter is not valid UTF-8")
		}
	}
	if f.Args == "" {
		return nil
	}
	if _, _, err := SplitArgs(f.Args); err != nil {
		return fmt.Errorf("args: %w", err)
	}
	return nil
}

// Limits of the args of a filter.
const (
	maxArgs  = 1000 // characters
	maxSteps = 32   // of the path
)

// SplitArgs splits the args of a filter, such as 0.customer:42, into the steps of a path and a
// value. A step is an index of an array or the name of a member. A dot, a colon or a backslash in a
// name has a backslash before it.
func SplitArgs(args string) (path []string, value string, err error) {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%q %s: write a path, a colon and a value, such as 0.customer:42", Shorten(args, 80), fmt.Sprintf(format, a...))
	}
	if n := utf8.RuneCountInString(args); n > maxArgs {
		return nil, "", bad("has %d characters, at most %d are read", n, maxArgs)
	}
	var step []byte
	for i := 0; i < len(args); i++ {
		c := args[i]
		switch {
		case c == '\\':
			if i++; i == len(args) || strings.IndexByte(`.:\`, args[i]) < 0 {
				return nil, "", bad("has a backslash that is not before a dot, a colon or a backslash")
			}
			step = append(step, args[i])
			continue
		case c != '.' && c != ':':
			step = append(step, c)
			continue
		case i == 0 && c == ':':
			return nil, "", bad("has no path")
		case len(step) == 0:
			return nil, "", bad("has an empty step in its path")
		case len(path) == maxSteps:
			return nil, "", bad("has over %d steps in its path", maxSteps)
		}
		path, step = append(path, string(step)), step[:0]
		if c == ':' {
			return path, args[i+1:], nil
		}
	}
	return nil, "", bad("has no colon between path and value")
}

// Drifted reports whether a filter matches over 1 % more or fewer entries than expected. The user
// who chose it then saw something else.
func (o *Operation) Drifted(found int64) bool {
	return o.Expected != nil && math.Abs(float64(found-*o.Expected)) > float64(*o.Expected)/100
}

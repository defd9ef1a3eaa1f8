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

// Operation is something that is done to many entries of one stream: those with some jids, or those that a filter matches. An undo takes
// back what another operation did.
type Operation struct {
	ID       string   `json:"id"`
	Action   string   `json:"action,omitempty"` // trigger, retry, kill, delete, change or undo
	Stream   string   `json:"stream,omitempty"`
	JIDs     []string `json:"jids,omitempty"`
	Filter   *Filter  `json:"filter,omitempty"`
	AsOf     *int64   `json:"as_of,omitempty"`          // entries that came later, by their first offset, are not touched
	Expected *int64   `json:"expected_count,omitempty"` // refused where the filter matches over 1 % more or less
	At       *float64 `json:"at,omitempty"`             // change: the new time
	Rate     float64  `json:"rate,omitempty"`           // entries a second at most; 0 for no limit
	Reason   string   `json:"reason,omitempty"`
	Actor    string   `json:"actor,omitempty"`
	Undoes   string   `json:"undoes,omitempty"`  // undo: the operation that is taken back
	From     int64    `json:"from,omitempty"`    // undo: the first record of the journal that tells of that
	Through  int64    `json:"through,omitempty"` // undo: the last
	UndoneBy string   `json:"-"`                 // the newest operation that undoes this one; views find it

	State     string  `json:"state"` // running, done, cancelled or interrupted
	StartedAt float64 `json:"started_at,omitempty"`
	EndedAt   float64 `json:"ended_at,omitempty"`
	Total     int64   `json:"total,omitempty"` // entries that it is about, where that was counted
	Done      int64   `json:"done"`            // entries that it was done to: the journal's records of it
	Failed    int64   `json:"failed"`          // entries to which it could not be done
	LastError string  `json:"last_error,omitempty"`
	Cursor    int64   `json:"cursor"` // everything up to here has been dealt with: an offset (undo: of the journal), or of jids how many
	Skips     []Skip  `json:"skips,omitempty"`

	FirstRecord int64 `json:"first_record,omitempty"` // where the journal says that it begins; 0 if nobody knows
	LastRecord  int64 `json:"last_record,omitempty"`  // and that it has ended
}

// Skip counts entries that an undo leaves as they are, for one reason.
type Skip struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Skipped counts all of them.
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
	OperationInterrupted = "interrupted" // its stream was made anew
)

// Filter chooses entries. What is empty does not count.
type Filter struct {
	Queue string   `json:"queue,omitempty"`
	Class string   `json:"class,omitempty"`
	Error string   `json:"error,omitempty"`
	Tag   string   `json:"tag,omitempty"`
	JID   string   `json:"jid,omitempty"`
	Text  string   `json:"text,omitempty"` // stands in the record, whatever the case of ASCII letters
	From  *float64 `json:"from,omitempty"` // from ≤ at < to
	To    *float64 `json:"to,omitempty"`
}

// maxJIDs is how many jids an operation names at most.
const maxJIDs = 10_000

// Check tells why an operation cannot be carried out, or nil.
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
	for _, text := range []string{f.Queue, f.Class, f.Error, f.Tag, f.JID, f.Text} {
		if !utf8.ValidString(text) {
			return errors.New("the filter is not valid UTF-8")
		}
	}
	return nil
}

// Drifted tells whether a filter matches so many more or less than expected that whoever chose it saw something else: over 1 %.
func (o *Operation) Drifted(found int64) bool {
	return o.Expected != nil && math.Abs(float64(found-*o.Expected)) > float64(*o.Expected)/100
}

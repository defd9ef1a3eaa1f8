package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unique"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Slot names a fire of a job that limits count. The worker gets it in a header, and reports with it
// that the job has ended. Only Millrace reads what it says.
type Slot struct {
	Stream string // of the entry that was fired
	Offset int64
	Epoch  int64 // of the fire
	Seq    int64
	JIDTag string
}

// The streams whose entries are fired, as slots name them.
var slotStreams = map[string]string{"s": ScheduledJobs, "r": Retries, "d": DeadJobs, "g": Gated}

// String returns the slot as the header has it.
func (s Slot) String() string {
	for short, stream := range slotStreams {
		if stream == s.Stream {
			return fmt.Sprintf("%s.%d.%d.%d.%s", short, s.Offset, s.Epoch, s.Seq, s.JIDTag)
		}
	}
	return ""
}

// Fire returns the number of the fire that took the slot.
func (s Slot) Fire() Through { return Through{Epoch: s.Epoch, Through: s.Seq} }

// maxSlot is the length of the longest slot: the tag of a jid is at most a short string.
const maxSlot = 2 * MaxShort

// ParseSlot parses what String returns.
func ParseSlot(text string) (s Slot, err error) {
	parts := strings.SplitN(text, ".", 5)
	wrong := fmt.Errorf("%q is no slot: repeat the header %s", Shorten(text, 100), HeaderSlot)
	if len(parts) != 5 || len(text) > maxSlot {
		return s, wrong
	}
	s.Stream, s.JIDTag = slotStreams[parts[0]], parts[4]
	for i, to := range []*int64{&s.Offset, &s.Epoch, &s.Seq} {
		if *to, err = strconv.ParseInt(parts[i+1], 10, 64); err != nil {
			return s, wrong
		}
	}
	if s.String() != text {
		return s, wrong
	}
	return s, nil
}

// SlotOf returns the slot of a fire.
func SlotOf(d *Dispatch) Slot { return Slot{d.Stream, d.Offset, d.Epoch, d.Seq, d.JIDTag} }

// TakesSlot reports whether a fire takes a slot of its own. A lease that runs out keeps the slot of
// the fire before it.
func (d *Dispatch) TakesSlot() bool { return d.Slot != "" && d.Slot == SlotOf(d).String() }

// HeldSlot is a slot that an entry holds, in the records state and freed.
type HeldSlot struct {
	Stream string    `json:"stream"`
	Offset int64     `json:"offset"`
	JID    string    `json:"jid"` // a JIDTag
	Fires  []Through `json:"fires,omitempty"`
	Group
	Unique UniqueID `json:"unique,omitempty"` // the key of a unique job, which is taken as long
	At     float64  `json:"at,omitempty"`     // of the newest fire
	Why    string   `json:"why,omitempty"`    // freed
}

// Group is what limits look at: the jobs of one queue, class and key wait for the same slots.
type Group struct {
	Queue string `json:"queue,omitempty"`
	Class string `json:"class,omitempty"`
	Key   string `json:"key,omitempty"`
}

// Compact returns the group with texts that keep nothing else in memory: they may be parts of a
// job. Many groups have the same queue and class.
func (g Group) Compact() Group {
	return Group{Queue: unique.Make(g.Queue).Value(), Class: unique.Make(g.Class).Value(), Key: strings.Clone(g.Key)}
}

// Compare orders groups.
func (g Group) Compare(o Group) int {
	return cmp.Or(cmp.Compare(g.Queue, o.Queue), cmp.Compare(g.Class, o.Class), cmp.Compare(g.Key, o.Key))
}

// Types of the records of jobs.ends.
const (
	TypeEnded   = "ended"   // a worker says that a job has ended
	TypeClaimed = "claimed" // the leader says that a worker has asked whether it may run a job
)

// End is a record of jobs.ends.
type End struct {
	Type    string   `json:"type"`
	Slot    string   `json:"slot,omitempty"`
	Slots   []string `json:"slots,omitempty"`   // ended: in place of slot, of jobs that end together
	Process string   `json:"process,omitempty"` // identity of the worker process
	At      float64  `json:"at,omitempty"`
	Epoch   int64    `json:"epoch,omitempty"` // claimed: of the leader
	N       int64    `json:"n,omitempty"`     // claimed: its number in the epoch
}

// ParseEnd parses a record of jobs.ends, and the slots that it names. If some of the slots are
// wrong, it returns the others beside the error.
func ParseEnd(body []byte) (e End, all []Slot, err error) {
	if err := shared.CheckRecord(body); err != nil {
		return e, nil, err
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&e); err != nil {
		return e, nil, fmt.Errorf("record: %w", err)
	}
	if !slices.Contains([]string{TypeEnded, TypeClaimed}, e.Type) {
		return e, nil, fmt.Errorf("member \"type\" is %q: it must be %s", Shorten(e.Type, 40), TypeEnded)
	}
	all, err = e.parseSlots()
	return e, all, err
}

func (e *End) parseSlots() ([]Slot, error) {
	texts := e.Slots
	switch {
	case texts == nil:
		texts = []string{e.Slot}
	case e.Type != TypeEnded:
		return nil, fmt.Errorf("member \"slots\" is for records of type %s", TypeEnded)
	case e.Slot != "":
		return nil, errors.New("members \"slot\" and \"slots\" exclude each other")
	case len(texts) == 0 || len(texts) > MaxEnds:
		return nil, fmt.Errorf("member \"slots\" has %d slots: it must have 1 to %d", len(texts), MaxEnds)
	}
	all, wrong := make([]Slot, 0, len(texts)), error(nil)
	for _, text := range texts {
		if s, err := ParseSlot(text); err != nil {
			wrong = err
		} else {
			all = append(all, s)
		}
	}
	return all, wrong
}

// Message returns the record as a message to jobs.ends.
func (e End) Message() (Message, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return Message{}, fmt.Errorf("wire: %w", err)
	}
	return Message{Key: JobEnds, Type: e.Type, Body: body}, nil
}

// RateUse is the state of a rate after a fire: when it would be free again, in microseconds since
// 1970, if nothing else used it.
type RateUse struct {
	ID   string
	Free int64
}

// RatesHeader returns what a fire says of the rates that it used.
func RatesHeader(all []RateUse) string {
	parts := make([]string, len(all))
	for i, u := range all {
		parts[i] = u.ID + "=" + strconv.FormatInt(u.Free, 10)
	}
	return strings.Join(parts, ";")
}

// ParseRates parses RatesHeader. It leaves out what it cannot read.
func ParseRates(header string) (all []RateUse) {
	for part := range strings.SplitSeq(header, ";") {
		id, free, _ := strings.Cut(part, "=")
		if n, err := strconv.ParseInt(free, 10, 64); err == nil && id != "" {
			all = append(all, RateUse{id, n})
		}
	}
	return all
}

package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// State is what the journal and the barriers say of leadership.
type State struct {
	Epoch         int64              `json:"epoch"` // -1: no leader was ever seen
	Identity      string             `json:"identity"`
	OpenedAt      float64            `json:"opened_at"`
	FoldedSeq     int64              `json:"folded_seq"`   // the highest number of this epoch's records that were folded
	Confirmed     int64              `json:"confirmed"`    // this epoch's watermark
	Witness       string             `json:"witness"`      // what identifies the run of the broker; empty: nothing
	WitnessFrom   wire.Through       `json:"witness_from"` // the witness tells only of what was fired after this
	ProbeQueue    string             `json:"probe_queue"`  // an exclusive queue of this epoch's leader; empty if an older version leads
	Probe         int64              `json:"probe"`        // the number of this epoch's newest probe, 0 if none
	ProbeAt       int64              `json:"probe_at"`     // where the journal has it
	RoutedTo      int64              `json:"routed_to"`    // up to here, what the journal says was fired reached its queue, -1 if that is not known of anything
	MisroutedTime float64            `json:"astray_time"`  // when that was said last
	MisroutedAt   int64              `json:"astray_at"`    // what was fired between RoutedTo and here may not have, -1 if all is well
	Needs         int64              `json:"needs"`
	Told          bool               `json:"told"`          // the journal, as far as it was folded, says what it needs
	JournalFirst  int64              `json:"journal_first"` // the first offset of the journal that was folded, -1 if none
	LowWater      map[string]int64   `json:"low_water"`
	LowWaterAt    float64            `json:"low_water_at"` // when it was moved last
	BegunAt       float64            `json:"begun_at"`     // when the first epoch began that the journal tells of
	Held          map[string]int64   `json:"held"`
	Lost          bool               `json:"lost"`     // there was a journal before this one, of which this one does not tell
	LostAt        int64              `json:"lost_at"`  // it is this journal's own end that was lost: what it said behind this offset, -1 if not
	HeldAll       bool               `json:"held_all"` // since the journal begins, a leader has held all that was in question
	Why           string             `json:"why"`      // what is held is held
	Barriers      map[string]Barrier `json:"barriers"`
	First         map[string]int64   `json:"first"` // the first offset of each entry stream that was folded, behind what retention took
	FirstBarrier  map[string]int64   `json:"first_barrier"`
	Format2       int64              `json:"format_2"`  // the first epoch whose leader knew jobs.gated, -1 if none
	LastLed       int64              `json:"last_led"`  // the newest epoch but this one in which anything was done, -1 if none
	Led           bool               `json:"led"`       // in this epoch anything was done
	Recreated     map[string]int64   `json:"recreated"` // by entry stream, the epoch that found it to be made anew
	Journals      int                `json:"journals"`  // how many journals are gone that were read before this one: their epochs mean nothing any more

	Void        map[string]int64 `json:"void"`       // by stream, records without effect of leaders that had been followed already
	Trimmed     int64            `json:"trimmed"`    // dead jobs that were given up
	Duplicates  int64            `json:"duplicates"` // publishes that were repeated
	Fired       int64            `json:"fired"`      // fires, by this view's count
	Buried      int64            `json:"buried"`
	JournaledTo wire.Through     `json:"told_to"`  // the journal's newest record by number; the epoch is the newest that has settled what earlier ones left
	Rejected    map[string]int64 `json:"rejected"` // by stream, all that were ever seen
}

// Barrier is the newest one of an entry stream.
type Barrier struct {
	Epoch  int64 `json:"epoch"`
	Offset int64 `json:"offset"`
	Buried int64 `json:"buried"` // the highest number of this epoch's burials that the stream has

	Before  wire.Through `json:"before"`  // the same, of the newest epoch before it that buried anything
	Earlier []int64      `json:"earlier"` // the epochs of those before it, the newest 64
}

func newState() State {
	return State{Epoch: -1, LastLed: -1, Format2: -1, JournalFirst: -1, LostAt: -1, RoutedTo: -1, MisroutedAt: -1, LowWater: map[string]int64{}, Held: map[string]int64{}, Barriers: map[string]Barrier{},
		First: map[string]int64{}, FirstBarrier: map[string]int64{}, Recreated: map[string]int64{}, Rejected: map[string]int64{}, Void: map[string]int64{}}
}

func (s State) clone() State {
	s.LowWater, s.Held = maps.Clone(s.LowWater), maps.Clone(s.Held)
	s.Barriers, s.Rejected = maps.Clone(s.Barriers), maps.Clone(s.Rejected)
	s.Void, s.First, s.Recreated = maps.Clone(s.Void), maps.Clone(s.First), maps.Clone(s.Recreated)
	s.FirstBarrier = maps.Clone(s.FirstBarrier)
	return s
}

// Gap tells why the journal, as far as it was folded, does not tell all that was done; empty if it does, or if everything that is in
// question because of that is held, or was released since. base is the offset at which streams begin on this broker.
func (s State) Gap(base int64) string {
	switch {
	case s.HeldAll:
		return ""
	case !s.Told && s.Epoch >= 0:
		return "the journal begins with an epoch that it does not have"
	case s.JournalFirst > max(s.Needs, base):
		return fmt.Sprintf("the journal begins at %d, it is needed from %d on", s.JournalFirst, s.Needs)
	case s.Lost && s.LostAt >= 0:
		return fmt.Sprintf("the journal lost its newest records, those behind %d", s.LostAt)
	case s.Lost, s.Epoch < 0 && s.ledBefore(base):
		return "the journal is new, but a leader was here before: it was deleted"
	}
	return ""
}

// ledBefore tells whether the entry streams show that there was a leader: by its barriers, or by what they have forgotten since.
func (s State) ledBefore(base int64) bool {
	for _, first := range s.First {
		if first > base {
			return true
		}
	}
	return len(s.Barriers) > 0
}

// Foreign tells whether an entry stream cannot be the one that earlier leaders knew: each that did anything had left a barrier in it,
// and the stream, read from its very beginning, has none of them. If it has some, but not the newest, it has lost its end. base is the
// offset at which streams begin on this broker.
func (s State) Foreign(stream string, base int64) bool {
	if s.First[stream] > base {
		return false
	}
	low, moved := s.LowWater[stream]
	if first, seen := s.FirstBarrier[stream]; moved && seen && first >= low {
		return true // whoever moved low water had left a barrier below it
	}
	since, recreated := s.Recreated[stream]
	if stream == wire.Gated && s.LastLed < s.Format2 { // earlier leaders knew no such stream
		return false
	}
	if s.LastLed < 0 || recreated && since > s.LastLed {
		return false
	}
	b, ok := s.Barriers[stream]
	if len(b.Earlier) == maxEarlier {
		return false // it may be among those that are not remembered
	}
	return ok && b.Epoch == s.Epoch && !s.known(stream)
}

// known tells whether an entry stream has a barrier that an earlier leader left in it.
func (s State) known(stream string) bool {
	since, recreated := s.Recreated[stream]
	return slices.ContainsFunc(s.Barriers[stream].Earlier, func(epoch int64) bool {
		return epoch <= s.LastLed && (!recreated || epoch >= since)
	})
}

// Shortened tells of an entry stream that ends below low water whether it is the one that earlier leaders knew and has lost its end: it
// has barriers of theirs, or has forgotten its beginning since.
func (s State) Shortened(stream string, base int64) bool {
	return s.First[stream] > base || s.known(stream)
}

// maxEarlier is how many barriers of a stream are remembered.
const maxEarlier = 64

// follow is the barrier that follows b.
func (b Barrier) follow(epoch, offset int64, seen bool) Barrier {
	next := Barrier{Epoch: epoch, Offset: offset}
	if seen {
		if next.Before = b.Before; b.Buried > 0 {
			next.Before = wire.Through{Epoch: b.Epoch, Through: b.Buried}
		}
		next.Earlier = append(slices.Clone(b.Earlier), b.Epoch)
		next.Earlier = next.Earlier[max(0, len(next.Earlier)-maxEarlier):]
	}
	return next
}

var keyMeta = []byte{tableMeta}

func loadState(r view.Reader) (State, error) {
	s := newState()
	raw, ok, err := r.Get(keyMeta)
	if err != nil || !ok {
		return s, err
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("tracker: state is damaged: %w", err)
	}
	return s, nil
}

func (s State) save(tx *view.Tx) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("tracker: save state: %w", err)
	}
	return tx.Set(keyMeta, raw)
}

// witnessed notes which witness stands, by a numbered record. One that has stood before still tells
// of what was fired since then.
func (s *State) witnessed(r *wire.JournalRecord, seq int64) {
	if standing := r.StandingWitness(); standing != s.Witness {
		s.Witness, s.WitnessFrom = standing, wire.Through{Epoch: r.Epoch, Through: seq}
	}
}

// repeatedWitness notes what a record repeats of the witness, if the record that it repeats was not read.
func (s *State) repeatedWitness(r *wire.JournalRecord) {
	if s.Witness != "" {
		return
	}
	s.Witness = r.StandingWitness()
	if r.WitnessFrom != nil {
		s.WitnessFrom = *r.WitnessFrom
	}
}

// opened begins an epoch. Its leader may not have read all of the journal when it wrote that: it adds to what is known, and takes nothing
// back.
func (s *State) opened(offset int64, r *wire.JournalRecord) {
	if s.Led {
		s.LastLed, s.Led = s.Epoch, false
	}
	if s.Format2 < 0 && r.Format >= 2 {
		s.Format2 = offset
	}
	s.Epoch, s.Identity, s.OpenedAt, s.FoldedSeq, s.Confirmed, s.Probe = offset, r.Identity, r.At, 0, 0, 0
	s.ProbeQueue = r.Probe
	s.routed(r.RoutedTo)
	s.RoutedTo = min(s.RoutedTo, offset) // its leader may have known a journal that went on behind this
	if s.BegunAt == 0 {
		s.BegunAt = r.At
	}
	s.Needs = max(s.Needs, r.Needs)
	s.repeatedWitness(r)
	if len(r.Held) > 0 {
		s.Why = cmp.Or(r.Reason, s.Why)
	}
	all := offset > s.LostAt
	for _, stream := range wire.EntryStreamsOf(r.Format) {
		all = all && r.Held[stream] == wire.Everything
	}
	s.Lost = s.Lost || r.ReadTo > offset
	s.HeldAll = s.HeldAll && !s.Lost || all
	s.Lost = s.Lost && !all
	for stream, upTo := range r.Held {
		if known, held := s.Held[stream]; !held || known < upTo {
			s.Held[stream] = upTo
		}
	}
}

package tracker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/millrace-jobs/millrace/wire"
)

// State is what the journal and the barriers say of leadership.
type State struct {
	Epoch       int64        `json:"epoch"` // -1: no leader was ever seen
	Identity    string       `json:"identity"`
	OpenedAt    float64      `json:"opened_at"`
	FoldedSeq   int64        `json:"folded_seq"`   // the highest number of this epoch's records that were folded
	Skipped     wire.Ranges  `json:"-"`            // numbers of this epoch that were not folded, below the highest
	Unread      bool         `json:"-"`            // since the last number, there was a record that cannot be read
	Confirmed   int64        `json:"confirmed"`    // this epoch's watermark
	Ended       bool         `json:"ended"`        // this epoch's leader says that it does not act any more
	Witness     string       `json:"witness"`      // identifies the run of the broker; empty: there is none
	WitnessFrom wire.Through `json:"witness_from"` // the witness speaks only for what was fired after this
	ProbeQueue  string       `json:"probe_queue"`  // an exclusive queue of this epoch's leader; empty: an older version leads
	Probe       int64        `json:"probe"`        // the number of this epoch's newest probe, 0 if none
	ProbeAt     int64        `json:"probe_at"`     // its offset in the journal
	GatedProbe  wire.Through `json:"-"`            // the epoch and number of the newest probe in jobs.gated

	RetriesProbe wire.Through `json:"-"` // the same of the retries

	// What was fired up to RoutedTo, an offset of the journal, reached its queue. -1: that is not
	// known of any fire. What was fired between RoutedTo and MisroutedAt may not have. -1: all did.
	RoutedTo      int64   `json:"routed_to"`
	MisroutedTime float64 `json:"misrouted_time"` // when the journal last said that fires were misrouted
	MisroutedAt   int64   `json:"misrouted_at"`

	Needs        int64              `json:"needs"`         // the journal must be read from here on
	NeedsKnown   bool               `json:"needs_known"`   // the journal, as far as it was folded, has Needs
	JournalFirst int64              `json:"journal_first"` // the first offset of the journal that was folded, -1 if none
	LowWater     map[string]int64   `json:"low_water"`
	LowWaterAt   float64            `json:"low_water_at"` // when it moved last
	BegunAt      float64            `json:"begun_at"`     // when the first epoch began that the journal has
	Held         map[string]int64   `json:"held"`
	Lost         bool               `json:"lost"`     // there was a journal before this one, and this one does not have its records
	LostAt       int64              `json:"lost_at"`  // the journal lost its own end, behind this offset; -1: it did not
	HeldAll      bool               `json:"held_all"` // since the journal begins, a leader has held all that was in question
	Why          string             `json:"why"`      // why entries are held
	Barriers     map[string]Barrier `json:"barriers"`
	First        map[string]int64   `json:"first"` // the first offset of each entry stream that was folded, behind what retention took
	FirstBarrier map[string]int64   `json:"first_barrier"`
	Format2      int64              `json:"format_2"`  // the first epoch whose leader knew jobs.gated, -1 if none
	LastLed      int64              `json:"last_led"`  // the newest epoch before this one in which anything was done, -1 if none
	Led          bool               `json:"led"`       // in this epoch anything was done
	Recreated    map[string]int64   `json:"recreated"` // by entry stream, the epoch that found it to be a new one
	Journals     int                `json:"journals"`  // how many journals were read before this one, and are gone; their epochs mean nothing any more

	Void        map[string]int64 `json:"void"`       // by stream, records without effect of leaders that had been followed already
	Trimmed     int64            `json:"trimmed"`    // dead jobs that were given up
	Duplicates  int64            `json:"duplicates"` // publishes that were repeated
	Fired       int64            `json:"fired"`      // fires, by this view's count
	Buried      int64            `json:"buried"`
	JournaledTo wire.Through     `json:"journaled_to"` // the journal's newest record by number; its epoch is the newest that settled what earlier epochs left
	Rejected    map[string]int64 `json:"rejected"`     // by stream, all that were ever seen
}

// Barrier is the newest barrier of an entry stream.
type Barrier struct {
	Epoch  int64 `json:"epoch"`
	Offset int64 `json:"offset"`
	Buried int64 `json:"buried"` // the highest number of this epoch's burials that the stream has

	Before  wire.Through `json:"before"`  // the same, of the newest epoch before it that buried anything
	Earlier []int64      `json:"earlier"` // the epochs of the barriers before it, the newest 64

	Overtaken bool `json:"overtaken,omitempty"` // retention took what followed it, perhaps newer barriers
}

// voids reports whether a leader's record behind the barrier is void because of its epoch.
func (b Barrier) voids(epoch int64) bool { return !b.Overtaken && epoch != b.Epoch }

// overtaken notes that retention took records of an entry stream before they were read.
func (s *State) overtaken(stream string) {
	delete(s.First, stream)
	if b, seen := s.Barriers[stream]; seen {
		b.Overtaken = true
		s.Barriers[stream] = b
	}
}

func newState() State {
	return State{
		Epoch: -1, LastLed: -1, Format2: -1, JournalFirst: -1, LostAt: -1, RoutedTo: -1, MisroutedAt: -1,
		LowWater: map[string]int64{}, Held: map[string]int64{}, Barriers: map[string]Barrier{}, First: map[string]int64{},
		FirstBarrier: map[string]int64{}, Recreated: map[string]int64{}, Rejected: map[string]int64{}, Void: map[string]int64{},
	}
}

func (s State) clone() State {
	s.LowWater, s.Held = maps.Clone(s.LowWater), maps.Clone(s.Held)
	s.Barriers, s.Rejected = maps.Clone(s.Barriers), maps.Clone(s.Rejected)
	s.Void, s.First, s.Recreated = maps.Clone(s.Void), maps.Clone(s.First), maps.Clone(s.Recreated)
	s.FirstBarrier = maps.Clone(s.FirstBarrier)
	s.Skipped = slices.Clone(s.Skipped)
	return s
}

// Gap returns why the journal, as far as it was folded, does not have all that was done. It returns
// an empty text if the journal does, or if everything that is in question is held or was released
// since. base is the offset at which streams begin on this broker.
func (s State) Gap(base int64) string {
	switch {
	case s.HeldAll:
		return ""
	case !s.NeedsKnown && s.Epoch >= 0:
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

// ledBefore reports whether the entry streams show that there was a leader: they have its barriers,
// or have forgotten something since.
func (s State) ledBefore(base int64) bool {
	for _, first := range s.First {
		if first > base {
			return true
		}
	}
	return len(s.Barriers) > 0
}

// Foreign reports whether an entry stream cannot be the one that earlier leaders knew. Each leader
// that did anything had left a barrier in it, and the stream, read from its beginning, has none of
// them. A stream that has some, but not the newest, has lost its end. base is the offset at which
// streams begin on this broker.
func (s State) Foreign(stream string, base int64) bool {
	if s.First[stream] > base {
		return false
	}
	low, moved := s.LowWater[stream]
	if first, seen := s.FirstBarrier[stream]; moved && seen && first >= low {
		return true // the leader that moved low water had left a barrier below it
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

// known reports whether an entry stream has a barrier of an earlier leader.
func (s State) known(stream string) bool {
	since, recreated := s.Recreated[stream]
	return slices.ContainsFunc(s.Barriers[stream].Earlier, func(epoch int64) bool {
		return epoch <= s.LastLed && (!recreated || epoch >= since)
	})
}

// Shortened reports of an entry stream that ends below low water whether it is the one that earlier
// leaders knew, and has lost its end. Then it has barriers of theirs, or has forgotten its
// beginning since.
func (s State) Shortened(stream string, base int64) bool {
	return s.First[stream] > base || s.known(stream)
}

// maxEarlier is how many barriers of a stream are remembered.
const maxEarlier = 64

// follow returns the barrier that follows b.
func (b Barrier) follow(epoch, offset int64) Barrier {
	next := Barrier{Epoch: epoch, Offset: offset, Before: b.Before}
	buried := wire.Through{Epoch: b.Epoch, Through: b.Buried}
	if b.Buried > 0 && (!b.Overtaken || buried.Compare(b.Before) > 0) {
		next.Before = buried
	}
	next.Earlier = append(slices.Clone(b.Earlier), b.Epoch)
	next.Earlier = next.Earlier[max(0, len(next.Earlier)-maxEarlier):]
	return next
}

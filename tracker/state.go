package tracker

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// State is what the journal and the barriers say of leadership.
type State struct {
	Epoch        int64              `json:"epoch"` // -1: no leader was ever seen
	Identity     string             `json:"identity"`
	OpenedAt     float64            `json:"opened_at"`
	FoldedSeq    int64              `json:"folded_seq"` // the highest number of this epoch's records that were folded
	Confirmed    int64              `json:"confirmed"`  // this epoch's watermark
	Witness      string             `json:"witness"`
	Needs        int64              `json:"needs"`
	JournalFirst int64              `json:"journal_first"` // the first offset of the journal that was folded, -1 if none
	LowWater     map[string]int64   `json:"low_water"`
	Held         map[string]int64   `json:"held"`
	Barriers     map[string]Barrier `json:"barriers"`

	Void       map[string]int64 `json:"void"`       // by stream, records of a leader that had been followed already
	Duplicates int64            `json:"duplicates"` // publishes that were repeated
	Fired      int64            `json:"fired"`      // fires, by this view's count
	Buried     int64            `json:"buried"`
	Rejected   map[string]int64 `json:"rejected"` // by stream, all that were ever seen
}

// Barrier is the newest one of an entry stream.
type Barrier struct {
	Epoch  int64 `json:"epoch"`
	Offset int64 `json:"offset"`
}

func newState() State {
	return State{Epoch: -1, JournalFirst: -1, LowWater: map[string]int64{}, Held: map[string]int64{}, Barriers: map[string]Barrier{},
		Rejected: map[string]int64{}, Void: map[string]int64{}}
}

func (s State) clone() State {
	s.LowWater, s.Held = maps.Clone(s.LowWater), maps.Clone(s.Held)
	s.Barriers, s.Rejected = maps.Clone(s.Barriers), maps.Clone(s.Rejected)
	s.Void = maps.Clone(s.Void)
	return s
}

// Begun tells whether the journal, as far as it was folded, reaches back to where it must be read from.
func (s State) Begun() bool { return s.JournalFirst <= max(s.Needs, 1) }

// LedBefore tells whether a leader was here of which the journal knows nothing: the journal was lost.
func (s State) LedBefore() bool { return s.Epoch < 0 && len(s.Barriers) > 0 }

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

// opened begins an epoch.
func (s *State) opened(offset int64, r *wire.JournalRecord) {
	s.Epoch, s.Identity, s.OpenedAt, s.FoldedSeq, s.Confirmed = offset, r.Identity, r.At, 0, 0
	s.Needs, s.Held = r.Needs, map[string]int64{}
	maps.Copy(s.Held, r.Held)
}

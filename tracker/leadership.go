package tracker

import (
	"encoding/json"
	"fmt"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
)

// leadership is the State as the fold has it in the middle of a batch.
type leadership struct {
	state   State
	changed bool // since it was written
	shown   *Shown
}

var keyState = []byte{table.Meta}

func loadState(r view.Reader) (State, error) {
	s := newState()
	raw, ok, err := r.Get(keyState)
	if err != nil || !ok {
		return s, err
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("tracker: state is damaged: %w", err)
	}
	return s, nil
}

func (l *leadership) load(r view.Reader) (err error) {
	if l.state, err = loadState(r); err != nil {
		return err
	}
	l.changed = false
	l.shown.show(l.state.clone())
	return nil
}

// save writes the state if it changed. It is shown when the batch is written.
func (l *leadership) save(tx *view.Tx) error {
	if !l.changed {
		return nil
	}
	l.changed = false
	shown := l.state.clone()
	tx.AfterCommit(func() { l.shown.show(shown) })
	raw, err := json.Marshal(l.state)
	if err != nil {
		return fmt.Errorf("tracker: save state: %w", err)
	}
	return tx.Set(keyState, raw)
}

// update changes the state.
func (l *leadership) update(fn func(*State)) {
	fn(&l.state)
	l.changed = true
}

// peek returns the state, which only update may change.
func (l *leadership) peek() *State { return &l.state }

// void counts a record that has no effect.
func (l *leadership) void(stream string) { l.update(func(s *State) { s.Void[stream]++ }) }

// settled reports whether low water has passed an offset of a stream.
func (l *leadership) settled(stream string, offset int64) bool {
	low, moved := l.state.LowWater[stream]
	return moved && offset < low
}

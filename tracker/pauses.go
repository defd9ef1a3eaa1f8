package tracker

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Pauses are the paused queues: workers take no jobs of them.
type Pauses struct {
	all atomic.Pointer[map[string]wire.Pause] // the map is never changed, only replaced
}

// Paused returns the paused queues.
func (p *Pauses) Paused() map[string]wire.Pause { return maps.Clone(*p.all.Load()) }

// pauses writes the paused queues. Each record about paused queues has all of them. So views that
// knew different ones, since a journal was lost, know the same again.
type pauses struct{ *Pauses }

func (p *pauses) load(r view.Reader) error {
	raw, ok, err := r.Get([]byte{tablePaused})
	if err != nil {
		return err
	}
	var all map[string]wire.Pause
	if ok {
		if err := json.Unmarshal(raw, &all); err != nil {
			return fmt.Errorf("tracker: paused queues are damaged: %w", err)
		}
	}
	p.all.Store(&all)
	return nil
}

// fold takes in which queues are paused; nil says nothing.
func (p *pauses) fold(tx *view.Tx, all *map[string]wire.Pause) error {
	if all == nil {
		return nil
	}
	value, err := json.Marshal(*all)
	if err != nil {
		return fmt.Errorf("tracker: save paused queues: %w", err)
	}
	tx.AfterCommit(func() { p.all.Store(all) })
	if len(*all) == 0 {
		return tx.Delete([]byte{tablePaused})
	}
	return tx.Set([]byte{tablePaused}, value)
}

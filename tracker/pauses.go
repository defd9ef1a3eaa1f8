package tracker

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// pauses are the queues of which nobody is to take jobs. Each record that tells of them has all of them, so that views which knew different
// ones, since a journal was lost, know the same again.
type pauses struct {
	mu  sync.RWMutex
	all map[string]wire.Pause // never changed, only replaced
}

func loadPauses(r view.Reader) (*pauses, error) {
	p := &pauses{}
	raw, ok, err := r.Get([]byte{tablePaused})
	if err != nil || !ok {
		return p, err
	}
	if err := json.Unmarshal(raw, &p.all); err != nil {
		return nil, fmt.Errorf("tracker: paused queues are damaged: %w", err)
	}
	return p, nil
}

// pause takes in which queues are paused.
func (t *Entries) pause(tx *view.Tx, all *map[string]wire.Pause) error {
	if all == nil {
		return nil
	}
	value, err := json.Marshal(*all)
	if err != nil {
		return fmt.Errorf("tracker: save paused queues: %w", err)
	}
	tx.AfterCommit(func() {
		t.pauses.mu.Lock()
		defer t.pauses.mu.Unlock()
		t.pauses.all = *all
	})
	if len(*all) == 0 {
		return tx.Delete([]byte{tablePaused})
	}
	return tx.Set([]byte{tablePaused}, value)
}

// Paused gives the queues of which nobody is to take jobs.
func (t *Entries) Paused() map[string]wire.Pause {
	t.pauses.mu.RLock()
	defer t.pauses.mu.RUnlock()
	return maps.Clone(t.pauses.all)
}

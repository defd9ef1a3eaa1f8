package tracker

import (
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// numbers are the journal's records of one epoch that have a number and are not known to be
// confirmed, in their order.
type numbers struct {
	epoch int64
	open  []number
	known *view.Mark // the newest that the batch found to be confirmed
}

type number struct {
	seq int64
	at  view.Mark
}

// maxNumbers bounds how many are remembered: more than a leader has open.
const maxNumbers = 16_384

func (n *numbers) reset() { *n = numbers{} }

// add notes a record of the journal that was folded.
func (n *numbers) add(r *wire.Record, epoch, seq int64) {
	if epoch != n.epoch {
		n.epoch, n.open = epoch, nil
	}
	if last := len(n.open) - 1; seq <= 0 || last >= 0 && seq <= n.open[last].seq {
		return
	}
	if len(n.open) >= maxNumbers {
		n.open = append([]number(nil), n.open[maxNumbers/2:]...)
	}
	n.open = append(n.open, number{seq, view.MarkOf(r)})
}

// confirmed notes what is confirmed. The journal has what is before the newest of that too.
func (n *numbers) confirmed(k wire.Confirmed) {
	if k.Epoch != n.epoch {
		return
	}
	newest := k.Through
	for _, r := range k.Above {
		newest = max(newest, r.Last)
	}
	for len(n.open) > 0 && n.open[0].seq <= newest {
		n.known, n.open = &n.open[0].at, n.open[1:]
	}
}

// save gives the store the newest one.
func (n *numbers) save(tx *view.Tx) error {
	if n.known == nil {
		return nil
	}
	at := *n.known
	n.known = nil
	return tx.Confirmed(wire.Journal, at)
}

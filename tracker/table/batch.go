package table

import "github.com/millrace-jobs/millrace/view"

// Batch distinguishes the transactions of a fold. What a fold keeps for a batch that was never
// written is forgotten when the next one begins.
type Batch struct{ tx *view.Tx }

// Begins reports whether a transaction is seen for the first time.
func (b *Batch) Begins(tx *view.Tx) bool {
	if b.tx == tx {
		return false
	}
	b.tx = tx
	return true
}

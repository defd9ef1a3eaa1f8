package tracker

import "github.com/millrace-jobs/millrace/view"

// batch tells one batch of the fold from the next. What is kept of one that was never written is forgotten then.
type batch struct{ tx *view.Tx }

// begins tells whether a transaction is seen for the first time.
func (b *batch) begins(tx *view.Tx) bool {
	if b.tx == tx {
		return false
	}
	b.tx = tx
	return true
}

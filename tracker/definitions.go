package tracker

import (
	"cmp"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// definitions writes what users define.
type definitions struct {
	periodics *periodics
	limits    *limits
	governed  *governing
	entries   *entryTable
}

// define takes in layers that were set or removed.
func (d *definitions) define(tx *view.Tx, j *wire.JournalRecord, offset int64) error {
	return cmp.Or(d.periodics.define(tx, j), d.limits.define(tx, j), d.governed.define(tx, d.entries, j, offset))
}

// replace takes in definitions that were written again at low water.
func (d *definitions) replace(tx *view.Tx, j *wire.JournalRecord) error {
	return cmp.Or(d.periodics.replace(tx, j.Periodics), d.limits.replace(tx, j.Limits), d.governed.replace(tx, d.entries, j.Queues))
}

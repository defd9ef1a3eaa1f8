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
}

// define takes in layers that were set or removed.
func (d *definitions) define(tx *view.Tx, j *wire.JournalRecord) error {
	return cmp.Or(d.periodics.define(tx, j), d.limits.define(tx, j))
}

// replace takes in definitions that were written again at low water.
func (d *definitions) replace(tx *view.Tx, j *wire.JournalRecord) error {
	return cmp.Or(d.periodics.replace(tx, j.Periodics), d.limits.replace(tx, j.Limits))
}

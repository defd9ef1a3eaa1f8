package tracker

import (
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Part is a fold over streams that are not about entries, with tables of its own. The records that
// it refuses are listed with all other rejected records.
type Part interface {
	// Streams returns the streams that it reads.
	Streams() []string
	// Fold takes in a record. If it refuses the record, or a part of it, it returns the reason and
	// the bytes that it refused.
	Fold(tx *view.Tx, r *wire.Record) (reason string, refused []byte, err error)
	// Commit is called once for each batch, before the batch is written.
	Commit(tx *view.Tx) error
	// Forget is called when one of its streams was deleted and created again. The new stream is
	// read immediately.
	Forget(tx *view.Tx, stream string) error
}

// Observer sees what was folded. It must not write.
type Observer interface {
	Observe(tx *view.Tx, r *wire.Record)
}

package view

import (
	"errors"

	"github.com/millrace-jobs/millrace/wire"
)

// Fold interprets records. It is deterministic, and does nothing but write to tx.
type Fold interface {
	Fold(tx *Tx, r *wire.Record) error
	// Commit is called once for each batch, before the batch is written.
	Commit(tx *Tx) error
}

// ErrHalt ends the view permanently if the error of a fold wraps it: this version of the program
// must not continue.
var ErrHalt = errors.New("view: cannot go on")

// Reloader is a fold that keeps data in memory. After a rollback of the store, it reads the data
// again.
type Reloader interface {
	Reload() error
}

// Forgetter is a fold that must know which records cannot be read any more.
type Forgetter interface {
	// Forget forgets the records of a stream that was deleted and created again. If it returns
	// true, the new stream is read immediately. Otherwise it waits for a Rewind. A new journal is
	// always read immediately. ErrRebuild makes the view rebuild the store.
	Forget(tx *Tx, stream string) (bool, error)
	// Overtaken is called when retention deleted records of a stream before they were read. The
	// next records are behind the hole.
	Overtaken(tx *Tx, stream string) error
}

// Starter is a fold that knows where to start a stream that has no position, because it knows the
// earlier records from elsewhere.
type Starter interface {
	// Start returns the offset to start from (-1: the first one), and whether it is known. last is
	// the end of the stream, or -1 if it is empty. Start may rewind other streams.
	Start(tx *Tx, stream string, last int64) (from int64, known bool, err error)
}

// ErrRebuild is returned when the store must be rebuilt. The store is emptied when it is opened
// next.
var ErrRebuild = errors.New("view: has to be rebuilt")

package tracker

import (
	"slices"

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

// Add makes a part take the records of its streams. Heartbeats and metrics that no part takes are
// checked, and not kept.
func (t *Entries) Add(p Part) { t.parts = append(t.parts, p) }

// Observer sees what was folded. It must not write.
type Observer interface {
	Observe(tx *view.Tx, r *wire.Record)
}

// SetObserver makes an observer see each record, except those of the journal that are not
// Millrace's.
func (t *Entries) SetObserver(o Observer) { t.observer = o }

func (t *Entries) partOf(stream string) Part {
	for _, p := range t.parts {
		if slices.Contains(p.Streams(), stream) {
			return p
		}
	}
	return nil
}

func (t *Entries) foldPart(tx *view.Tx, r *wire.Record, p Part) error {
	if r.Fault != "" {
		return t.fold.rejects.record(tx, r, r.Fault)
	}
	reason, refused, err := p.Fold(tx, r)
	if err != nil || reason == "" {
		return err
	}
	some := *r
	some.Body = refused
	return t.fold.rejects.record(tx, &some, reason)
}

package tracker

import (
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Part is a fold over streams that are not about entries, with tables of its own. What it refuses is listed with all else that is.
type Part interface {
	// Streams are those that it reads.
	Streams() []string
	// Fold takes in a record. If it refuses it, or a part of it, it gives the reason, and the bytes that it could not take.
	Fold(tx *view.Tx, r *wire.Record) (reason string, refused []byte, err error)
	// Commit is called once a batch, before it is written.
	Commit(tx *view.Tx) error
	// Forget is told that one of its streams was deleted and made anew; it is read anew at once.
	Forget(tx *view.Tx, stream string) error
}

// Add has a part take the records of its streams. Without one, heartbeats and metrics are checked, and what they say is not kept.
func (t *Entries) Add(p Part) { t.parts = append(t.parts, p) }

// Observer is told of what was folded. It must not write.
type Observer interface {
	Observe(tx *view.Tx, r *wire.Record)
}

// SetObserver has an observer told of each record, but of those of the journal that are not Millrace's.
func (t *Entries) SetObserver(o Observer) { t.observer = o }

func (t *Entries) partOf(stream string) Part {
	for _, p := range t.parts {
		if slices.Contains(p.Streams(), stream) {
			return p
		}
	}
	return nil
}

// Start implements view.Starter: a part may know what need not be read.
func (t *Entries) Start(tx *view.Tx, stream string, last int64) (from int64, known bool, err error) {
	if s, ok := t.partOf(stream).(view.Starter); ok {
		return s.Start(tx, stream, last)
	}
	return -1, true, nil
}

func (t *Entries) foldPart(tx *view.Tx, r *wire.Record, p Part) error {
	if r.Fault != "" {
		return t.reject(tx, r, r.Fault)
	}
	reason, refused, err := p.Fold(tx, r)
	if err != nil || reason == "" {
		return err
	}
	some := *r
	some.Body = refused
	return t.reject(tx, &some, reason)
}

package ledger

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// EntryID names an entry by its stream and its offset in that stream.
type EntryID struct {
	Stream string
	Offset int64
}

// ID names the entry at an offset of a stream.
func ID(stream string, offset int64) EntryID { return EntryID{stream, offset} }

// Publish is one publish, from when it is sent until the view has folded its record.
type Publish struct {
	// Build returns the message, with the publish's number and the watermark.
	Build func(seq, confirmed int64) wire.Message
	Plain bool // it has no number

	Elsewhere bool // it does not go to the journal

	Entry    EntryID // what it is about, if anything
	Dispatch bool    // it is a fire or burial of Entry
	Queue    *Queue  // the queue that answers it, nil if the broker alone does
	Size     int     // what it takes of the window; Send sets it if there is a number
	KeepOpen bool    // its number stays open when it is confirmed, until Close

	Confirmed func()       // is called once the broker has it
	Folded    func() error // is called once the view has folded it too

	// Returned is called instead of publishing again where the broker has refused it. journaled
	// reports whether the journal has it.
	Returned func(now time.Time, why string, journaled bool) error
	Freed    func() // is called when its entry is free again after it was taken back

	// Lost, where it is not nil, is called when its answer is not waited for any longer. It is
	// waited for LostAfter at least.
	Lost      func()
	LostAfter time.Duration

	state
}

// state is what the ledger knows of a publish.
type state struct {
	seq       int64
	void      *Publish      // the record that takes it back, if one does
	more      []EntryID     // that are busy with it, beside Entry
	sent      time.Time     // by the clock of the steps
	sentAfter time.Duration // by the clock of the answers
	nacks     int
	acked     bool
	aside     bool
}

// Seq returns the number, 0 if there is none.
func (p *Publish) Seq() int64 { return p.seq }

// Acked reports whether the broker has it, or the journal has it that it was taken back.
func (p *Publish) Acked() bool { return p.acked }

// Settled reports whether it is known what became of it, to a view that has folded so much.
func (p *Publish) Settled(folded int64) bool { return p.acked && p.seq <= folded }

// PassedOver reports whether its queue has answered a later one. A queue mostly answers in order.
func (p *Publish) PassedOver() bool { return p.seq < p.Queue.answered }

// Queue is what the ledger knows of one queue.
type Queue struct {
	Silent   bool  // it has not answered for long
	Aside    int   // how much of what is open is set aside
	answered int64 // the newest number that it has answered
}

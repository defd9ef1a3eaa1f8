package ledger

import (
	"slices"

	"github.com/millrace-jobs/millrace/wire"
)

// MaxRanges is how many ranges a header names. A record of its own names all of them.
const MaxRanges = 8

// numbers is how far the numbers of an epoch are confirmed.
type numbers struct {
	seq       int64 // the newest
	watermark int64 // nothing is open up to here

	above  wire.Ranges // the numbers above the watermark that are not open
	header string      // what a header says of them; stale if moved
	moved  bool
	passes int // how many numbers were closed
}

// Seq returns the newest number.
func (n *numbers) Seq() int64 { return n.seq }

// Watermark returns the number up to which nothing is open.
func (n *numbers) Watermark() int64 { return n.watermark }

// Above returns the numbers above the watermark that are not open.
func (n *numbers) Above() wire.Ranges { return n.above }

// Passes returns how many numbers were closed. It changes whenever there is something to say.
func (n *numbers) Passes() int { return n.passes }

// HasPassed reports whether nothing is open about a number.
func (n *numbers) HasPassed(seq int64) bool {
	return seq <= n.watermark || slices.ContainsFunc(n.above, func(r wire.Range) bool { return r.First <= seq && seq <= r.Last })
}

// pass closes a number, and moves the watermark.
func (n *numbers) pass(seq int64) {
	if seq == 0 {
		return
	}
	n.passes++
	n.moved = true
	if seq != n.watermark+1 {
		n.above = n.above.Add(seq)
		return
	}
	n.watermark = seq
	if len(n.above) > 0 && n.above[0].First == seq+1 {
		n.watermark = n.above[0].Last
		n.above = n.above[1:]
	}
}

// sayAbove adds the numbers above the watermark to a message that says what is confirmed.
func (n *numbers) sayAbove(m wire.Message) {
	if _, says := m.Headers[wire.HeaderConfirmed]; !says {
		return
	}
	if n.moved {
		n.header, n.moved = n.above[:min(len(n.above), MaxRanges)].String(), false
	}
	if n.header != "" {
		m.Headers[wire.HeaderAbove] = n.header
	}
}

package ledger

// continuation is something to be done once the view has folded a record of this epoch. What a
// client is answered then stands in any case: the record comes before anything that a later
// leader writes.
type continuation struct {
	seq int64
	fn  func() error
}

// continuations are what waits for a step.
type continuations struct {
	next    []func() error // for any
	waiting []continuation // for one after the fold
}

// after has fn called in the first step after the fold of a number.
func (c *continuations) after(seq int64, fn func() error) {
	c.waiting = append(c.waiting, continuation{seq, fn})
}

// NextStep has fn called in the next step.
func (c *continuations) NextStep(fn func() error) { c.next = append(c.next, fn) }

// run does what waited for a step in which everything up to a number was folded.
func (c *continuations) run(folded int64) error {
	next := c.next
	c.next = nil
	for _, fn := range next {
		if err := fn(); err != nil {
			return err
		}
	}
	waiting := c.waiting
	c.waiting = nil
	for _, w := range waiting {
		if w.seq > folded {
			c.waiting = append(c.waiting, w)
		} else if err := w.fn(); err != nil {
			return err
		}
	}
	return nil
}

package metrics

import "github.com/millrace-jobs/millrace/view"

// Bounds of names.
const (
	maxPairs  = 1000 // of class and queue, in a day
	maxErrors = 16   // error classes of a pair, in a day
	maxName   = 255  // bytes of a name
	otherName = "other"
)

// other is what counts as none of the pairs that have sums of their own.
var other = pair{}

// names are the pairs and error classes that have sums of their own on one day: the first that
// came. Since minutes and hours belong to a day, what is other in one is so in all, and all
// who read the same records in the same order find the same.
type names struct {
	pairs map[pair]map[string]bool // → error classes
	total Counts
}

// admit gives the names under which something is counted.
func (n *names) admit(p pair, errorClass string) (pair, string) {
	if len(p.class) > maxName || len(p.queue) > maxName {
		p = other
	}
	errors, known := n.pairs[p]
	if !known && p != other && n.own() >= maxPairs {
		p = other
		errors, known = n.pairs[p]
	}
	if !known {
		errors = map[string]bool{}
		n.pairs[p] = errors
	}
	if errorClass == "" || errors[errorClass] {
		return p, errorClass
	}
	if len(errors) >= maxErrors {
		errorClass = otherName
	}
	errors[errorClass] = true
	return p, errorClass
}

// own is how many pairs have sums of their own.
func (n *names) own() int {
	if _, some := n.pairs[other]; some {
		return len(n.pairs) - 1
	}
	return len(n.pairs)
}

// learn takes in the names that a roll-up admitted.
func (n *names) learn(p pair, r *row) {
	errors := n.pairs[p]
	if errors == nil {
		errors = map[string]bool{}
		n.pairs[p] = errors
	}
	for class := range r.errors {
		errors[class] = true
	}
}

// namesOf reads the names of a day. What is being flushed is in the transaction.
func (m *Metrics) namesOf(tx *view.Tx, start int64) (*names, error) {
	if n := m.days[start]; n != nil {
		return n, nil
	}
	n := &names{pairs: map[pair]map[string]bool{}}
	see := func(p pair, r *row) {
		n.learn(p, r)
		n.total = n.total.plus(r.outcome())
	}
	err := m.scan(tx, tableDay, start, start+1, false, func(_ int64, p pair, r *row) { see(p, r) })
	if err != nil {
		return nil, err
	}
	for c, r := range m.added {
		if floor(c.minute, day) == start {
			see(c.pair, r)
		}
	}
	m.days[start] = n
	return n, nil
}

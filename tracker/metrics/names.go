package metrics

// Bounds of names.
const (
	maxPairs  = 1000 // of class and queue, in a day
	maxErrors = 16   // error classes of a pair, in a day
	maxName   = 255  // bytes of a name
	otherName = "other"
)

// other is the pair of everything that has no sum of its own.
var other = pair{}

// names are the pairs and error classes that have sums of their own on one day: the first ones.
// Minutes and hours belong to a day, so a name that is other in one of them is so in all. Every
// reader of the same records in the same order has the same names.
type names struct {
	pairs map[pair]map[string]bool // → error classes
	total Counts
}

// admit returns the names under which a record is counted.
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

// own returns how many pairs have sums of their own.
func (n *names) own() int {
	if _, some := n.pairs[other]; some {
		return len(n.pairs) - 1
	}
	return len(n.pairs)
}

// learn adds names that the author of a roll-up has admitted.
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

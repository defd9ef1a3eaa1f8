package main

import "sync"

// orders stands in for a table of a database.
type orders struct {
	mu  sync.Mutex
	all []order
}

type order struct {
	email  string
	Paid   bool `json:"paid"`
	Mailed bool `json:"mailed"`
}

// add adds an order, and returns its number.
func (o *orders) add(email string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, order{email: email})
	return len(o.all)
}

func (o *orders) get(number int) (order, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number < 1 || number > len(o.all) {
		return order{}, false
	}
	return o.all[number-1], true
}

// change changes an order, if there is one.
func (o *orders) change(number int, change func(*order)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number >= 1 && number <= len(o.all) {
		change(&o.all[number-1])
	}
}

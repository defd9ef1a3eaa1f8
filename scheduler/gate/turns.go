package gate

import (
	"container/heap"
	"maps"
)

// The keys of a queue take turns. A key with the weight 3 gets three turns in a round, others one.
// This is start-time fair queuing: each turn of a key begins 1/weight behind the one before it, on
// a clock that moves on with the turns that are taken. A key that comes back after it had nothing
// to do begins at that clock: it has saved no turns, and owes none.

// turns says whose turn it is.
type turns struct {
	clock   float64
	last    int64                       // the newest number
	next    map[sharer]float64          // when the next turn of a key begins
	weights map[string]map[string]int64 // by queue and key; 1 for others
}

// sharer is who takes turns: a key of a queue. All its groups share its turns.
type sharer struct{ queue, key string }

// place is a group's place among others: its turn, and its number if turns begin together.
type place struct {
	begins float64
	number int64
	has    bool
}

func (t *turns) step(s sharer) float64 {
	if weight := t.weights[s.queue][s.key]; weight > 1 {
		return 1 / float64(weight)
	}
	return 1
}

// assign gives a group its next turn, unless it has one.
func (t *turns) assign(p *place, s sharer) {
	if p.has {
		return
	}
	t.last++
	*p = place{max(t.next[s], t.clock), t.last, true}
	t.next[s] = p.begins + t.step(s)
}

// use ends a group's turn, which it has used.
func (t *turns) use(p *place) {
	t.clock = max(t.clock, p.begins)
	p.has = false
}

// giveBack ends a turn that was not used.
func (t *turns) giveBack(p *place, s sharer) {
	if p.has {
		t.next[s] -= t.step(s)
	}
	p.has = false
}

// sweep forgets keys that would begin at the clock.
func (t *turns) sweep() {
	maps.DeleteFunc(t.next, func(_ sharer, begins float64) bool { return begins <= t.clock })
}

// placed has a place.
type placed interface{ stands() *place }

func (p *place) stands() *place { return p }

// line is what stands in the order of turns. It is a heap.
type line[T placed] []T

func (l *line[T]) push(x T) { heap.Push(l, x) }
func (l *line[T]) pop() T   { return heap.Pop(l).(T) }

// Len, Less, Swap, Push and Pop are heap.Interface.
func (l line[T]) Len() int { return len(l) }

// Less orders by turn.
func (l line[T]) Less(i, j int) bool {
	a, b := l[i].stands(), l[j].stands()
	return a.begins < b.begins || a.begins == b.begins && a.number < b.number
}

// Swap is for package heap.
func (l line[T]) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push is for package heap.
func (l *line[T]) Push(x any) { *l = append(*l, x.(T)) }

// Pop is Push's counterpart.
func (l *line[T]) Pop() any {
	old, none := *l, *new(T)
	last := old[len(old)-1]
	old[len(old)-1] = none
	*l = old[:len(old)-1]
	return last
}

package gate

import (
	"container/heap"
	"time"
)

// timer is when something wakes.
type timer struct {
	at    time.Time
	index int // in its timers; -1 if it is in none
}

var asleep = timer{index: -1}

func (t *timer) of() *timer { return t }

// timed has a timer.
type timed interface{ of() *timer }

// timers are what wakes, the first of all at hand. It is a heap.
type timers[T timed] []T

func (t *timers[T]) push(x T) { heap.Push(t, x) }
func (t *timers[T]) fix(x T)  { heap.Fix(t, x.of().index) }
func (t *timers[T]) pop() T   { return heap.Pop(t).(T) }

// due reports whether the first wakes now.
func (t timers[T]) due(now time.Time) bool { return len(t) > 0 && !t[0].of().at.After(now) }

// first returns when the first wakes, if that is before a time.
func (t timers[T]) first(otherwise time.Time) time.Time {
	if t.due(otherwise) {
		return t[0].of().at
	}
	return otherwise
}

// Len, Less, Swap, Push and Pop are heap.Interface.
func (t timers[T]) Len() int { return len(t) }

// Less orders by time.
func (t timers[T]) Less(i, j int) bool { return t[i].of().at.Before(t[j].of().at) }

// Swap keeps the indexes.
func (t timers[T]) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].of().index, t[j].of().index = i, j
}

// Push is for package heap.
func (t *timers[T]) Push(x any) {
	x.(T).of().index = len(*t)
	*t = append(*t, x.(T))
}

// Pop is Push's counterpart.
func (t *timers[T]) Pop() any {
	old, none := *t, *new(T)
	last := old[len(old)-1]
	old[len(old)-1] = none
	*t = old[:len(old)-1]
	last.of().index = -1
	return last
}

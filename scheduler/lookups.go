package scheduler

import "github.com/millrace-jobs/millrace/tracker"

// lookups are how far the entries of a queue or group were looked up.
type lookups struct {
	behind tracker.DueKey   // everything up to here was taken
	ahead  []tracker.DueKey // what comes next, as far as it was looked up
	step   int              // when it was looked up
	looks  int              // how many are looked up next
}

// from has everything from a key on looked up again, unless it will be found in its turn.
func (l *lookups) from(key tracker.DueKey) (again bool) {
	if ahead := l.ahead; len(ahead) > 0 && ahead[len(ahead)-1].Before(key) {
		return false
	}
	l.ahead = nil
	key.Offset-- // key itself is wanted
	if key.Before(l.behind) {
		l.behind = key
	}
	return true
}

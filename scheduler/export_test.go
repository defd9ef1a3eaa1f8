package scheduler

// Led reports whether a leader is known to answer.
func (a *Asker) Led() bool {
	l := a.current()
	if l == nil || l.unled() != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered || l.conn.Features().ExclusiveLock
}

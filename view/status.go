package view

import "time"

// Status is the state of one stream.
type Status struct {
	Stream    string        `json:"stream"`
	Position  int64         `json:"position"`
	CaughtUp  bool          `json:"caught_up"`
	Lag       time.Duration `json:"lag"`
	Recreated bool          `json:"recreated,omitempty"`
	Fault     string        `json:"fault,omitempty"`
	End       *End          `json:"end,omitempty"` // nil: unknown
}

// Status returns the state of every stream.
func (v *View) Status() []Status {
	all := make([]Status, len(v.streams))
	for i, t := range v.streams {
		all[i] = t.status(time.Now())
	}
	return all
}

func (t *tail) status(now time.Time) Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	caughtUp := t.state == stateRunning
	s := Status{Stream: t.stream, Position: t.position, CaughtUp: caughtUp, Lag: t.lateness.lag(now, caughtUp), Recreated: t.is == recreated, Fault: t.fault}
	if t.state.connected() {
		s.End = t.end.left(t.position)
	}
	return s
}

package cron

import "time"

// Next returns the first tick after t in a time zone, the zero time if there is none within 41
// years.
//
// If minute and hour both name times, each matching local time is a tick once: at the first
// instant after the gap if clocks skip it, and the first time if clocks show it twice. All other
// expressions follow the clock: they match each minute that the clock shows, however often it
// shows it.
func (e *Expression) Next(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	if e.fixed {
		return e.nextFixed(t)
	}
	return e.nextShown(t)
}

// nextFixed finds the next local time whose instant is after t.
func (e *Expression) nextFixed(t time.Time) time.Time {
	for c := civilOf(t); ; {
		found, ok := e.after(c)
		if !ok {
			return time.Time{}
		}
		if at := instant(found, t.Location()); at.After(t) {
			return at
		}
		c = civilOf(found.utc().Add(time.Minute))
	}
}

// near is so much time that a change of the offset is seen, and so little that there is only one.
const near = 36 * time.Hour

// nextShown finds the next minute that the clock shows and that matches. The offset from UTC may
// change before that.
func (e *Expression) nextShown(t time.Time) time.Time {
	for t = t.Truncate(time.Minute).Add(time.Minute); ; {
		found, ok := e.after(civilOf(t))
		if !ok {
			return time.Time{}
		}
		at := found.utc().Add(-offset(t)).In(t.Location())
		if far := at.Add(-near); far.After(t.Add(near)) {
			t = far // no minute before it matches at any offset
			continue
		}
		later := t.Add(near)
		if offset(t) == offset(later) {
			if !at.After(later) {
				return at
			}
			t = later
			continue
		}
		if t = change(t, later); at.Before(t) {
			return at
		}
	}
}

// instant returns when a clock first shows a local time, or the first instant after the gap if it
// never does.
func instant(c civil, zone *time.Location) time.Time {
	utc := c.utc().In(zone)
	before, after := utc.Add(-near), utc.Add(near)
	at := utc.Add(-offset(before))
	if offset(before) == offset(after) {
		return at
	}
	changes := change(before, after)
	if later := utc.Add(-offset(after)); !at.Before(changes) {
		at = later
		if later.Before(changes) {
			at = changes
		}
	}
	return at
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// change returns the instant between two at which the offset changes. Time.ZoneBounds cannot be
// used: for years that the zone's file does not list, it is wrong on the last day of leap years.
func change(before, after time.Time) time.Time {
	for was := offset(before); after.Sub(before) > time.Second; {
		middle := before.Add(after.Sub(before) / 2).Truncate(time.Second)
		if offset(middle) == was {
			before = middle
		} else {
			after = middle
		}
	}
	return after
}

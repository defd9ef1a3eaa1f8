package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// timeWithZone is a time as people read it where no column's title has the zone.
const timeWithZone = time.DateTime + " MST"

// clockLayouts are times of day; of those the next is meant.
var clockLayouts = []string{"15:04:05", "15:04"}

var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// moment is a time that is given in seconds since 1970.
func moment(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }

// parseTime reads a time as people write it; without a zone it is local.
func parseTime(s string, now time.Time) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(seconds) < 1e11 {
		return moment(seconds), nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range clockLayouts {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return nextClock(t, now), nil
		}
	}
	return time.Time{}, usagef("invalid time %q: use 2026-12-24T18:00:00+01:00, 2026-12-24 18:00, 2026-12-24, 18:00 or seconds since 1970", s)
}

// nextClock is when the clock shows a time of day next.
func nextClock(clock, now time.Time) time.Time {
	on := func(day int) time.Time {
		return time.Date(now.Year(), now.Month(), day, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	}
	if today := on(now.Day()); today.After(now) {
		return today
	}
	return on(now.Day() + 1)
}

// parseDuration is time.ParseDuration with days, and never negative.
func parseDuration(s string) (time.Duration, error) {
	const mostDays = 36500
	var days float64
	var d time.Duration
	var err error
	before, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		rest = s
	} else if days, err = strconv.ParseFloat(before, 64); err != nil || math.IsNaN(days) || days < 0 || days > mostDays {
		return 0, badDuration(s)
	}
	if rest != "" || !hasDays {
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return 0, badDuration(s)
		}
	}
	return d + time.Duration(days*float64(24*time.Hour)), nil
}

func badDuration(s string) error {
	return usagef("invalid duration %q: use 90s, 15m, 2h30m or 3d", s)
}

// relative says how far away a time is, in its two largest units.
func relative(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case d >= 0:
		return "in " + rough(d)
	default:
		return rough(-d) + " ago"
	}
}

func rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

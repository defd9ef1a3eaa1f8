// Package humantime reads and writes times and durations as people do: "18:00", "3d", "in 5m30s".
// Text that it cannot read is a fault of the command line (see package usage).
package humantime

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// WithZone is the layout of a time where no column title names the zone.
const WithZone = time.DateTime + " MST"

// MaxSkew is how far the clocks of two machines may be apart. The HTTP date by which they are
// compared has no fractions of seconds.
const MaxSkew = 2 * time.Second

var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
	time.DateOnly, "15:04:05", "15:04",
}

// Unix returns the time that is so many seconds after the start of 1970.
func Unix(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)) }

// Parse reads a time in one of several forms. A time without a zone is in the zone of now. A time
// of day means the next time that the clock shows it.
func Parse(s string, now time.Time) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(seconds) < 1e11 {
		return Unix(seconds), nil
	}
	for _, layout := range layouts {
		t, err := time.ParseInLocation(layout, s, now.Location())
		switch {
		case err == nil && strings.HasPrefix(layout, "15"): // no date
			return nextClock(t, now), nil
		case err == nil:
			return t, nil
		}
	}
	return time.Time{}, usage.Errorf("invalid time %q: use 2026-12-24T18:00:00+01:00, 2026-12-24 18:00, "+
		"2026-12-24, 18:00 or seconds since 1970", s)
}

// nextClock returns when the clock shows a time of day next.
func nextClock(clock, now time.Time) time.Time {
	on := func(day int) time.Time {
		return time.Date(now.Year(), now.Month(), day, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	}
	if today := on(now.Day()); today.After(now) {
		return today
	}
	return on(now.Day() + 1)
}

// ParseDuration is time.ParseDuration with days, and without negative durations.
func ParseDuration(s string) (time.Duration, error) {
	const maxDays = 36500
	var days float64
	var d time.Duration
	var err error
	before, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		rest = s
	} else if days, err = strconv.ParseFloat(before, 64); err != nil || math.IsNaN(days) || days < 0 || days > maxDays {
		return 0, InvalidDuration(s)
	}
	if rest != "" || !hasDays {
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return 0, InvalidDuration(s)
		}
	}
	return d + time.Duration(days*float64(24*time.Hour)), nil
}

// InvalidDuration returns the error for a text that is no duration.
func InvalidDuration(s string) error {
	return usage.Errorf("invalid duration %q: use 90s, 15m, 2h30m or 3d", s)
}

// Relative returns how far a time is from now, such as "in 5m30s" or "2d01h ago".
func Relative(t, now time.Time) string {
	if d := t.Sub(now); d < 0 {
		return Short(-d) + " ago"
	}
	return "in " + Short(t.Sub(now))
}

// Short returns a duration in its two largest units.
func Short(d time.Duration) string {
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

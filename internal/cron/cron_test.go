package cron

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
)

func zone(t require.TestingT, name string) *time.Location {
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

// Each case has the ticks that follow a time, in UTC.
func TestDaylightSavingTime(t *testing.T) {
	for _, c := range []struct{ expression, zone, after, want string }{
		// The clock skips 02:00 to 03:00.
		{"30 2 * * *", "America/New_York", "2026-03-07T08:00", "2026-03-08T07:00 2026-03-09T06:30"},
		{"0,30 2 * * *", "America/New_York", "2026-03-07T08:00", "2026-03-08T07:00 2026-03-09T06:00"},
		{"30 1-3 * * *", "America/New_York", "2026-03-08T06:00", "2026-03-08T06:30 2026-03-08T07:00 2026-03-08T07:30"},
		{"0 */2 * * *", "America/New_York", "2026-03-08T04:00", "2026-03-08T05:00 2026-03-08T08:00 2026-03-08T10:00"},
		{"*/30 2 * * *", "America/New_York", "2026-03-07T08:00", "2026-03-09T06:00 2026-03-09T06:30"},
		{"*/20 * * * *", "America/New_York", "2026-03-08T06:30", "2026-03-08T06:40 2026-03-08T07:00 2026-03-08T07:20"},
		// The clock shows 01:00 to 02:00 twice.
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00", "2026-11-01T05:30 2026-11-02T06:30"},
		{"30 1 * * *", "America/New_York", "2026-11-01T05:45", "2026-11-02T06:30"},
		{"30 1 * * *", "America/New_York", "2026-11-01T06:10", "2026-11-02T06:30"},
		{"15 * * * *", "America/New_York", "2026-11-01T05:00", "2026-11-01T05:15 2026-11-01T06:15 2026-11-01T07:15"},
		{"0 2 * * *", "America/New_York", "2026-11-01T05:45", "2026-11-01T07:00 2026-11-02T07:00"},
		// Half an hour is skipped, a midnight, and a whole day.
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00", "2026-10-03T15:30 2026-10-04T15:15"},
		{"0 0 * * *", "Africa/Cairo", "2025-04-24T00:00", "2025-04-24T22:00 2025-04-25T21:00"},
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-29T12:00", "2011-12-30T10:00 2012-12-29T22:00"},
	} {
		e, err := Parse(c.expression)
		require.NoError(t, err)
		at, err := time.Parse("2006-01-02T15:04", c.after)
		require.NoError(t, err)
		var got []string
		for range strings.Fields(c.want) {
			at = e.Next(at, zone(t, c.zone))
			got = append(got, at.UTC().Format("2006-01-02T15:04"))
		}
		require.Equal(t, c.want, strings.Join(got, " "), "%s in %s", c.expression, c.zone)
	}
}

func TestDays(t *testing.T) {
	for expression, want := range map[string]string{
		"0 0 13 * fri":    "2026-01-02 2026-01-09 2026-01-13 2026-01-16", // either
		"0 0 */2 * mon":   "2026-01-05 2026-01-19 2026-02-09",            // both: it begins with *
		"0 0 29 2 *":      "2028-02-29 2032-02-29",
		"0 0 31 * *":      "2026-01-31 2026-03-31",
		"0 0 * * 7":       "2026-01-04 2026-01-11",
		"0 0 * * fri-sun": "2026-01-02 2026-01-03 2026-01-04 2026-01-09",
		"0 0 1 jan,JUL *": "2026-07-01 2027-01-01",
		"@weekly":         "2026-01-04 2026-01-11",
		"@yearly":         "2027-01-01",
		"0 0 29 2 */7":    "2032-02-29 2060-02-29", // a Sunday
	} {
		e, err := Parse(expression)
		require.NoError(t, err)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, day := range strings.Fields(want) {
			at = e.Next(at, time.UTC)
			require.Equal(t, day+" 00:00", at.Format("2006-01-02 15:04"), expression)
		}
	}
}

func TestExpressionsThatAreRefused(t *testing.T) {
	for expression, says := range map[string]string{
		"":              "0 fields",
		"* * * *":       "4 fields",
		"* * * * * *":   "6 fields",
		"60 * * * *":    "not a number from 0 to 59",
		"* 24 * * *":    "not a number from 0 to 23",
		"* * 0 * *":     "not a number from 1 to 31",
		"* * * 13 *":    "a name from jan to dec",
		"* * * * 8":     "a name from sun to sat",
		"5/15 * * * *":  "write 5-59/15",
		"*/0 * * * *":   "the step must be",
		"*/x * * * *":   "the step must be",
		"30-10 * * * *": "ends before it begins",
		"1,,2 * * * *":  `"" is not a number`,
		"+1 * * * *":    "not a number",
		"0 0 30 2 *":    "it never matches",
		"@reboot":       "nickname is not known",
		"* * L * *":     "not a number",
	} {
		_, err := Parse(expression)
		require.ErrorContains(t, err, says, expression)
	}
	var none Expression
	require.True(t, none.Next(time.Unix(0, 0), time.UTC).IsZero())
}

// drawn is a field as the property test draws it: its text, and the values that it means.
type drawn struct {
	text string
	set  []int
}

func draw(t *rapid.T, f field) drawn {
	to := f.max
	if to == 7 {
		to = 6
	}
	n := func(from int) int { return rapid.IntRange(from, to).Draw(t, f.name) }
	var d drawn
	add := func(from, to, step int) {
		for v := from; v <= to; v += step {
			d.set = append(d.set, v)
		}
	}
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0, 1:
		d.text = "*"
		add(f.min, to, 1)
	case 2:
		step := rapid.IntRange(1, 12).Draw(t, "step")
		if step > f.max {
			step = f.max
		}
		d.text = fmt.Sprintf("*/%d", step)
		add(f.min, to, step)
	case 3:
		a := n(f.min)
		b := n(a)
		d.text = fmt.Sprintf("%d-%d", a, b)
		add(a, b, 1)
	default:
		a, b := n(f.min), n(f.min)
		d.text = fmt.Sprintf("%d,%d", a, b)
		d.set = []int{a, b}
	}
	return d
}

// TestTicksMatchOracle compares the ticks of some days around a change of the clock with those of
// an oracle, which looks at every minute as Vixie cron does.
func TestTicksMatchOracle(t *testing.T) {
	zones := []string{"UTC", "America/New_York", "Europe/Stockholm", "Australia/Lord_Howe", "Africa/Cairo", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "Africa/Casablanca"}
	begins := []string{"2026-03-07", "2026-03-27", "2026-10-02", "2026-10-24", "2026-10-31", "2025-04-23", "2025-10-29", "2018-02-16", "2018-11-02", "2011-12-28", "2026-02-13", "2040-12-29", "2096-11-02"}
	rapid.Check(t, func(t *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		from, err := time.Parse(time.DateOnly, rapid.SampledFrom(begins).Draw(t, "begin"))
		require.NoError(t, err)
		from = from.Add(time.Duration(rapid.IntRange(0, 3599).Draw(t, "seconds")) * time.Second)
		var all [5]drawn
		texts := make([]string, 5)
		for i, f := range fields {
			all[i] = draw(t, f)
			texts[i] = all[i].text
		}
		text := strings.Join(texts, " ")
		e, err := Parse(text)
		if err != nil {
			require.ErrorIs(t, err, errNever)
			return
		}
		to := from.Add(4 * 24 * time.Hour)
		var got []time.Time
		for at := e.Next(from, loc); !at.IsZero() && !at.After(to); at = e.Next(at, loc) {
			got = append(got, at.UTC())
		}
		require.Equal(t, oracle(all, from, to, loc), got, "%s in %s from %s", text, loc, from)
	})
}

// oracle looks at every minute from two days before a time on, so that it knows what the clock has
// shown.
func oracle(all [5]drawn, from, to time.Time, loc *time.Location) (ticks []time.Time) {
	matches := func(c time.Time) bool {
		in := func(i, v int) bool { return slices.Contains(all[i].set, v) }
		days, weekdays := in(2, c.Day()), in(4, int(c.Weekday()))
		on := days || weekdays
		if all[2].text[0] == '*' || all[4].text[0] == '*' {
			on = days && weekdays
		}
		return on && in(0, c.Minute()) && in(1, c.Hour()) && in(3, int(c.Month()))
	}
	fixed := all[0].text[0] != '*' && all[1].text[0] != '*'
	newest := time.Time{} // the latest local time that was shown
	for at := from.Truncate(time.Minute).Add(-48 * time.Hour); !at.After(to); at = at.Add(time.Minute) {
		l := at.In(loc)
		shown := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
		is := matches(shown)
		if fixed {
			is = is && shown.After(newest)
			for c := newest.Add(time.Minute); !newest.IsZero() && c.Before(shown); c = c.Add(time.Minute) {
				is = is || matches(c)
			}
		}
		if shown.After(newest) {
			newest = shown
		}
		if is && at.After(from) {
			ticks = append(ticks, at)
		}
	}
	return ticks
}

func BenchmarkNext(b *testing.B) {
	e, err := Parse("*/5 9-17 * * 1-5")
	require.NoError(b, err)
	loc, at := zone(b, "America/New_York"), time.Unix(1_800_000_000, 0)
	for b.Loop() {
		at = e.Next(at, loc)
	}
}

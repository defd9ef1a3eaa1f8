package humantime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 12, 24, 12, 30, 0, 0, berlin)
	for given, want := range map[string]time.Time{
		"2026-12-24T18:00:00Z":      time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC),
		"2026-12-24T18:00:00.5Z":    time.Date(2026, 12, 24, 18, 0, 0, 5e8, time.UTC),
		"2026-12-24T18:00:00+02:00": time.Date(2026, 12, 24, 16, 0, 0, 0, time.UTC),
		"2026-12-24T18:00:00":       time.Date(2026, 12, 24, 18, 0, 0, 0, berlin),
		"2026-12-24 18:00":          time.Date(2026, 12, 24, 18, 0, 0, 0, berlin),
		"2026-12-25":                time.Date(2026, 12, 25, 0, 0, 0, 0, berlin),
		"18:00":                     time.Date(2026, 12, 24, 18, 0, 0, 0, berlin),
		"12:30":                     time.Date(2026, 12, 25, 12, 30, 0, 0, berlin),
		"07:15:30":                  time.Date(2026, 12, 25, 7, 15, 30, 0, berlin),
		"1798135200":                time.Unix(1798135200, 0),
		"1798135200.25":             time.Unix(1798135200, 25e7),
	} {
		got, err := Parse(given, now)
		require.NoError(t, err, given)
		require.True(t, want.Equal(got), "%s: want %s, got %s", given, want, got)
	}
	for _, given := range []string{"", "soon", "25:00", "2026-13-01", "1e300", "NaN"} {
		_, err := Parse(given, now)
		require.ErrorContains(t, err, "invalid time", given)
		require.ErrorContains(t, err, " 2026-12-24, 18:00 or seconds since 1970", given)
	}
}

func TestParseDuration(t *testing.T) {
	for given, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2h30m": 150 * time.Minute, "3d": 72 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "0s": 0,
	} {
		got, err := ParseDuration(given)
		require.NoError(t, err, given)
		require.Equal(t, want, got)
	}
	for _, given := range []string{"", "d", "3", "-1s", "-1d", "3dd", "3d-1h", "1e99d", "NaNd"} {
		_, err := ParseDuration(given)
		require.ErrorContains(t, err, "invalid duration", given)
	}
}

func TestRelative(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "in 0s", 59 * time.Second: "in 59s", 61 * time.Second: "in 1m01s", 125 * time.Minute: "in 2h05m", 49 * time.Hour: "in 2d01h",
		-30 * time.Second: "30s ago",
	} {
		require.Equal(t, want, Relative(now.Add(d), now))
	}
}

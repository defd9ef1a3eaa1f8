package problem

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
	"github.com/millrace-jobs/millrace/wire"
)

func TestTimesInSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-4e9*1e6, 4e9*1e6).Draw(t, "micros") // until 2096: a float64 of seconds distinguishes microseconds up to 2^32
		at := time.UnixMicro(micros).UTC()
		got, err := ParseTime(strconv.FormatFloat(wire.Seconds(at), 'f', -1, 64), time.Now())
		require.NoError(t, err)
		require.Equal(t, at, got, "the time of an item finds the item again")
	})
}

func TestTimesRelativeToNow(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for given, want := range map[string]time.Time{
		"-90s": now.Add(-90 * time.Second), "-15m": now.Add(-15 * time.Minute), "-1h": now.Add(-time.Hour), "+2d": now.AddDate(0, 0, 2),
		"-99999d": now.Add(-99999 * 24 * time.Hour), "-0s": now,
	} {
		got, err := ParseTime(given, now)
		require.NoError(t, err, given)
		require.Equal(t, want, got, given)
	}
	for _, bad := range []string{"1h", " 1h", "-1", "-h", "-1.5h", "-1w", "--1h", "-100000d", "-1h30m"} {
		got, err := ParseTime(bad, now)
		if bad == "-1" { // seconds before 1970
			require.NoError(t, err)
			require.Equal(t, time.Unix(-1, 0).UTC(), got)
			continue
		}
		require.Error(t, err, bad)
	}
}

package wire

import (
	"fmt"
	"math"
	"time"

	"github.com/tidwall/gjson"
)

const (
	// millisAbove: a time above it is in milliseconds, as Sidekiq 8 writes it; in seconds it would be the year 5138.
	millisAbove = 1e11
	earliest    = -62135596800 // the year 1
	latest      = 253402300799 // the end of the year 9999
)

// parseTime reads seconds (or milliseconds) since the epoch, to the microsecond. What is between two is rounded up, so that nothing is
// ever early, unless it is nearer to one than a number of its size can say: 1700000000.123456 means just that.
func parseTime(name string, v gjson.Result) (time.Time, error) {
	if v.Type != gjson.Number {
		return time.Time{}, fmt.Errorf("member %q must be a number: seconds since 1970", name)
	}
	seconds := v.Num
	if math.Abs(seconds) > millisAbove {
		seconds /= 1000
	}
	if math.IsNaN(seconds) || seconds < earliest || seconds > latest {
		return time.Time{}, fmt.Errorf("member %q is out of range: the years 1 to 9999 are allowed", name)
	}
	whole, fraction := math.Modf(seconds)
	micros := math.Round(fraction * 1e6)
	if precision := math.Nextafter(math.Abs(seconds), math.Inf(1)) - math.Abs(seconds); fraction*1e6-micros > precision*1e6 {
		micros++
	}
	return time.Unix(int64(whole), int64(micros)*1000).UTC(), nil
}

func (o object) time(name string) (time.Time, error) {
	if !o.has(name) {
		return time.Time{}, nil
	}
	return parseTime(name, o.at(name))
}

// Seconds is t as the formats write it.
func Seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

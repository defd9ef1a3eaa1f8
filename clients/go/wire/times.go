package wire

import (
	"fmt"
	"math"
	"time"

	"github.com/tidwall/gjson"
)

// Limits of times, in seconds.
const (
	// MillisAbove is the largest number of seconds. A larger number is milliseconds, as Sidekiq 8
	// writes them; in seconds it would be the year 5138.
	MillisAbove = 1e11
	Earliest    = -62135596800 // the year 1
	Latest      = 253402300799 // the end of the year 9999
)

// ParseTime parses seconds or milliseconds since 1970, to the microsecond. It rounds up, so that no
// job is early. It rounds down only by less than the precision of the number: 1700000000.123456
// means exactly that.
func ParseTime(name string, v gjson.Result) (time.Time, error) {
	if v.Type != gjson.Number {
		return time.Time{}, fmt.Errorf("member %q must be a number: seconds since 1970", name)
	}
	seconds := v.Num
	if math.Abs(seconds) > MillisAbove {
		seconds /= 1000
	}
	if math.IsNaN(seconds) || seconds < Earliest || seconds > Latest {
		return time.Time{}, fmt.Errorf("member %q is out of range: the years 1 to 9999 are allowed", name)
	}
	whole, fraction := math.Modf(seconds)
	micros := math.Round(fraction * 1e6)
	if precision := math.Nextafter(math.Abs(seconds), math.Inf(1)) - math.Abs(seconds); fraction*1e6-micros > precision*1e6 {
		micros++
	}
	return time.Unix(int64(whole), int64(micros)*1000).UTC(), nil
}

// Time returns an optional time, or the zero time.
func (o Object) Time(name string) (time.Time, error) {
	if !o.Has(name) {
		return time.Time{}, nil
	}
	return ParseTime(name, o.At(name))
}

// Seconds returns t as the formats write it.
func Seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

package fieldmap

import (
	"math"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// Units of times.
const (
	unitSeconds = "s"
	unitMillis  = "ms"
	unitISO     = "iso"
)

// longestSeconds is the largest number that counts as seconds: see wire.Job.
const longestSeconds = 1e11

// layouts are the forms of the unit iso. A time without a zone is UTC.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07",
	"2006-01-02 15:04:05.999999999 -0700", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999 UTC",
	"2006/01/02 15:04:05 UTC", "2006/01/02 15:04:05 -0700", "2006-01-02",
}

// moment returns a time as jobs have it: seconds since 1970. Without a unit, a number is seconds,
// or milliseconds if it is above 1e11, and a text is RFC 3339.
func (s *source) moment(v gjson.Result) (string, error) {
	if s.unit == "" && v.Type == gjson.Number {
		return v.Raw, nil
	}
	if s.unit == "" || s.unit == unitISO {
		return s.written(v)
	}
	raw, n, ok := numberOf(v)
	switch {
	case !ok:
		return "", s.wrong(v, "is no number of the unit %s: a text such as 2026-12-24T18:00:00Z has the unit iso", s.unit)
	case s.unit == unitMillis:
		return secondsText(n / 1000), nil
	case math.Abs(n) > longestSeconds:
		return "", s.wrong(v, "is too large for seconds: is its unit ms?")
	}
	return raw, nil
}

func (s *source) written(v gjson.Result) (string, error) {
	if v.Type != gjson.String {
		return "", s.wrong(v, "is no text: a number has the unit s or ms")
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, v.Str); err == nil {
			return secondsText(wire.Seconds(at)), nil
		}
		if s.unit == "" {
			break
		}
	}
	if s.unit == "" {
		return "", s.wrong(v, "is not like 2026-12-24T18:00:00Z: set its unit, s, ms or iso")
	}
	return "", s.wrong(v, "is not like 2026-12-24T18:00:00Z or 2026-12-24 18:00:00: a zone must be UTC or an offset such as +01:00")
}

func secondsText(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) }

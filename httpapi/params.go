package httpapi

import (
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// params are a query's parameters, each given once and known.
type params map[string]string

// parseParams reads the query of a request that knows some parameters. Others are refused: what is dropped silently shows something
// else than was asked for.
func parseParams(r *http.Request, known ...string) (params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query is not valid: %s", err)
	}
	p := params{}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, badRequest("parameter %q is not known here: %s", shorten(name), whatIsKnown(known))
		case len(given) > 1:
			return nil, badRequest("parameter %s is given %d times", name, len(given))
		case given[0] == "":
			return nil, badRequest("parameter %s is empty: leave it out", name)
		case !utf8.ValidString(given[0]):
			return nil, badRequest("parameter %s is not valid UTF-8", name)
		}
		p[name] = given[0]
	}
	return p, nil
}

func whatIsKnown(names []string) string {
	if len(names) == 0 {
		return "this path takes none"
	}
	return "use " + strings.Join(names, ", ")
}

// number reads a whole number from least to most.
func (p params) number(name string, otherwise, least, most int64) (int64, error) {
	text, given := p[name]
	if !given {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || int64(n) < least || int64(n) > most {
		return 0, badRequest("parameter %s is %q: it must be a whole number from %d to %d", name, shorten(text), least, most)
	}
	return int64(n), nil
}

// relativeForm is a time before or after now.
var relativeForm = regexp.MustCompile(`^([+-][0-9]{1,5})([smhd])$`)

var relativeUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// period reads the parameters from and to; zero: not given.
func (p params) period(now time.Time) (from, to time.Time, err error) {
	if from, err = p.time("from", now); err != nil {
		return from, to, err
	}
	to, err = p.time("to", now)
	return from, to, err
}

// time reads seconds since 1970 (above 1e11, milliseconds), a time as RFC 3339 has it, or one before or after now, such as -1h.
func (p params) time(name string, now time.Time) (time.Time, error) {
	text, given := p[name]
	if !given {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t.UTC(), nil
	}
	if m := relativeForm.FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64) // at most five digits
		return now.Add(time.Duration(n) * relativeUnits[m[2]]).UTC(), nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if seconds > millisAbove {
		seconds /= 1000
	}
	if err != nil || strings.ContainsAny(text, "xXpP_") || math.IsNaN(seconds) || seconds < earliest || seconds > latest {
		return time.Time{}, badRequest("parameter %s is %q: it must be seconds since 1970, a time like 2026-01-31T12:00:00Z, or one relative to now like -1h", name, shorten(text))
	}
	return time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC(), nil
}

const (
	millisAbove = 1e11
	earliest    = -62135596800 // the year 1
	latest      = 253402300799 // the end of the year 9999
)

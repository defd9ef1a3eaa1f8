package problem

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

	"github.com/labstack/echo/v4"
)

// Params are the parameters of a query: each is known and given once.
type Params map[string]string

// ParseParams reads the query of a request that takes the known parameters, and refuses others.
func ParseParams(r *http.Request, known ...string) (Params, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, BadRequest("the query is not valid: %s", err)
	}
	p := Params{}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, BadRequest("parameter %q is not known here: %s", Shorten(name), usage(known))
		case len(given) > 1:
			return nil, BadRequest("parameter %s is given %d times", name, len(given))
		case given[0] == "":
			return nil, BadRequest("parameter %s is empty: leave it out", name)
		case !utf8.ValidString(given[0]):
			return nil, BadRequest("parameter %s is not valid UTF-8", name)
		}
		p[name] = given[0]
	}
	return p, nil
}

// NoParams refuses a request that has parameters.
func NoParams(c echo.Context) error {
	_, err := ParseParams(c.Request())
	return err
}

func usage(names []string) string {
	if len(names) == 0 {
		return "this path takes none"
	}
	return "use " + strings.Join(names, ", ")
}

// Without refuses parameters that do not go with another.
func (p Params) Without(with string, names ...string) error {
	for _, name := range names {
		if p[name] != "" {
			return BadRequest("parameter %s does not go with %s", name, with)
		}
	}
	return nil
}

// Number returns a whole number from least to most; otherwise, if it is not given.
func (p Params) Number(name string, otherwise, least, most int64) (int64, error) {
	text, given := p[name]
	if !given {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || int64(n) < least || int64(n) > most {
		return 0, BadRequest("parameter %s is %q: it must be a whole number from %d to %d", name, Shorten(text), least, most)
	}
	return int64(n), nil
}

// relativeForm is a time before or after now.
var relativeForm = regexp.MustCompile(`^([+-][0-9]{1,5})([smhd])$`)

var relativeUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// Period returns the parameters from and to; zero if they are not given.
func (p Params) Period(now time.Time) (from, to time.Time, err error) {
	if from, err = p.Time("from", now); err != nil {
		return from, to, err
	}
	to, err = p.Time("to", now)
	return from, to, err
}

// Time returns a time; zero if it is not given. It is written as seconds since 1970 (above 1e11,
// milliseconds), as in RFC 3339, or relative to now, such as -1h.
func (p Params) Time(name string, now time.Time) (time.Time, error) {
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
	if err != nil || strings.ContainsAny(text, "xXpP_") || math.IsNaN(seconds) || seconds < Earliest || seconds > Latest {
		return time.Time{}, BadRequest("parameter %s is %q: it must be seconds since 1970, a time like 2026-01-31T12:00:00Z, or one relative to now like -1h",
			name, Shorten(text))
	}
	return time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC(), nil
}

// Bounds of times, in seconds since 1970.
const (
	millisAbove = 1e11
	Earliest    = -62135596800 // the year 1
	Latest      = 253402300799 // the end of the year 9999
)

// PathParam returns a parameter of the path. Paths are unescaped nowhere else.
func PathParam(c echo.Context, name string) (string, error) {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil || !utf8.ValidString(value) {
		return "", BadRequest("%s in the path is not valid: it must be percent-encoded UTF-8", name)
	}
	if value == "" {
		return "", NoSuchPath()
	}
	return value, nil
}

// OnlyPathParam returns a parameter of the path of a request that takes no others.
func OnlyPathParam(c echo.Context, name string) (string, error) {
	value, err := PathParam(c, name)
	if err != nil {
		return "", err
	}
	return value, NoParams(c)
}

// ParseOffset returns the offset of a record.
func ParseOffset(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, BadRequest("offset %q is not a whole number from 0", text)
	}
	return int64(n), nil
}

// Shorten cuts what a client sent to a length that a reason can show.
func Shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

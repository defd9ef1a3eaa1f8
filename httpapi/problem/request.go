package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/wire"
)

// Request reads what a client sent. It keeps the first error: a handler reads all that it needs,
// and checks Err once before it acts.
type Request struct {
	echo.Context
	params map[string]string
	err    error
}

// Read returns a Request of which nothing has been read yet.
func Read(c echo.Context) *Request { return &Request{Context: c} }

// Err returns the first error.
func (r *Request) Err() error { return r.err }

// Fail keeps an error, unless there was one before.
func (r *Request) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// BadRequest keeps an error that the client must fix.
func (r *Request) BadRequest(format string, args ...any) { r.Fail(BadRequest(format, args...)) }

// Query reads the query, which may have the known parameters, each once, and no others.
func (r *Request) Query(known ...string) {
	values, err := url.ParseQuery(r.Request().URL.RawQuery)
	if err != nil {
		r.BadRequest("the query is not valid: %s", err)
	}
	r.params = map[string]string{}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			r.BadRequest("parameter %q is not known here: %s", Shorten(name), usage(known))
		case len(given) > 1:
			r.BadRequest("parameter %s is given %d times", name, len(given))
		case given[0] == "":
			r.BadRequest("parameter %s is empty: leave it out", name)
		case !utf8.ValidString(given[0]):
			r.BadRequest("parameter %s is not valid UTF-8", name)
		}
		r.params[name] = given[0]
	}
}

func usage(names []string) string {
	if len(names) == 0 {
		return "this path takes none"
	}
	return "use " + strings.Join(names, ", ")
}

// Text returns a parameter; empty if it is not given.
func (r *Request) Text(name string) string { return r.params[name] }

// Without refuses parameters that do not go with another.
func (r *Request) Without(with string, names ...string) {
	for _, name := range names {
		if r.params[name] != "" {
			r.BadRequest("parameter %s does not go with %s", name, with)
		}
	}
}

// Number returns a parameter from least to most; otherwise, if it is not given.
func (r *Request) Number(name string, otherwise, least, most int64) int64 {
	text, given := r.params[name]
	if !given {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || int64(n) < least || int64(n) > most {
		r.BadRequest("parameter %s is %q: it must be a whole number from %d to %d", name, Shorten(text), least, most)
		return otherwise
	}
	return int64(n)
}

// Period returns the parameters from and to; zero if they are not given.
func (r *Request) Period(now time.Time) (from, to time.Time) {
	return r.time("from", now), r.time("to", now)
}

func (r *Request) time(name string, now time.Time) time.Time {
	text, given := r.params[name]
	if !given {
		return time.Time{}
	}
	t, err := ParseTime(text, now)
	if err != nil {
		r.BadRequest("parameter %s is %q: it must be seconds since 1970, a time like 2026-01-31T12:00:00Z, or one relative to now like -1h",
			name, Shorten(text))
	}
	return t
}

// PathParam returns a parameter of the path. Paths are unescaped nowhere else.
func (r *Request) PathParam(name string) string {
	value, err := url.PathUnescape(r.Param(name))
	if err != nil || !utf8.ValidString(value) {
		r.BadRequest("%s in the path is not valid: it must be percent-encoded UTF-8", name)
	} else if value == "" {
		r.Fail(NoSuchPath())
	}
	return value
}

// Offset reads the offset of a record.
func (r *Request) Offset(text string) int64 {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		r.BadRequest("offset %q is not a whole number from 0", text)
	}
	return int64(n)
}

// Raw returns the body.
func (r *Request) Raw() []byte {
	if r.err != nil {
		return nil
	}
	raw, err := io.ReadAll(r.Request().Body)
	if err != nil {
		r.Fail(err)
	}
	return raw
}

// Body decodes a JSON object, if there is a body, and refuses unknown members.
func (r *Request) Body(into any) {
	raw := r.Raw()
	if r.err != nil || len(raw) == 0 {
		return
	}
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '{' { // not null
		r.BadRequest("the body must be a JSON object")
		return
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		r.BadRequest("the body is not valid: %s", Shorten(err.Error()))
	} else if _, err := d.Token(); !errors.Is(err, io.EOF) {
		r.BadRequest("the body is not valid: there is more behind the JSON object")
	}
}

// DecodeStrict decodes an object that chooses what a command applies to. A member that is null or
// empty would count as left out and choose something else, so DecodeStrict refuses it.
func DecodeStrict(raw []byte, into any, mayBeEmpty ...string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for name, value := range members {
		if v := string(value); (v == "null" || v == `""`) && !slices.Contains(mayBeEmpty, name) {
			return fmt.Errorf("%s is %s: leave it out, or say what it is to be", name, v)
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Bounds of times, in seconds since 1970.
const (
	millisAbove = 1e11
	Earliest    = -62135596800 // the year 1
	Latest      = 253402300799 // the end of the year 9999
)

var (
	relativeForm  = regexp.MustCompile(`^([+-][0-9]{1,5})([smhd])$`)
	relativeUnits = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	errTime       = errors.New("httpapi: no time")
)

// ParseTime reads seconds since 1970 (above 1e11, milliseconds), RFC 3339, or times like -1h.
func ParseTime(text string, now time.Time) (time.Time, error) {
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
		return time.Time{}, errTime
	}
	return wire.FromSeconds(seconds), nil
}

// Shorten cuts what a client sent to a length that a reason can show.
func Shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// MaxRecord is the size of the largest record that is read, in bytes.
const MaxRecord = 16 << 20

// Limits of nesting. encoding/json reads 10,000 levels. A job must fit into an entry, and an entry
// into the journal.
const (
	MaxEntryDepth = 9_998
	MaxJobDepth   = MaxEntryDepth - 1
)

// Limits of times, in seconds.
const (
	// MillisAbove is the largest number of seconds. A larger number is milliseconds, as Sidekiq 8
	// writes them; in seconds it would be the year 5138.
	MillisAbove = 1e11
	Earliest    = -62135596800 // the year 1
	Latest      = 253402300799 // the end of the year 9999
)

// Object is the members of a JSON object that Millrace reads. They are so few that a search through
// all of them is faster than a hash.
type Object []Member

// Member is a member of an Object.
type Member struct {
	Name  string
	Value gjson.Result
}

// Get returns a member. given is false if there is none.
func (o Object) Get(name string) (value gjson.Result, given bool) {
	for i := range o {
		if o[i].Name == name {
			return o[i].Value, true
		}
	}
	return gjson.Result{}, false
}

// At returns a member, or the zero Result if there is none.
func (o Object) At(name string) gjson.Result {
	value, _ := o.Get(name)
	return value
}

// ParseObject reads the members in known, and ignores all others. It refuses a known member that
// occurs twice or is written with escapes: Millrace edits in place, and parsers differ on which of
// two members they read.
func ParseObject(raw string, known map[string]bool) (Object, error) {
	found := make(Object, 0, 8)
	var fault error
	gjson.Parse(raw).ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		if !known[name] {
			return true
		}
		if strings.IndexByte(key.Raw, '\\') >= 0 {
			fault = fmt.Errorf("member %q is written with escapes: write it plainly", name)
			return false
		}
		if _, twice := found.Get(name); twice {
			fault = fmt.Errorf("member %q appears twice", name)
			return false
		}
		found = append(found, Member{name, value})
		return true
	})
	return found, fault
}

// CheckRecord returns an error if body is not a JSON object of acceptable size.
func CheckRecord(body []byte) error {
	if err := CheckJSON(body); err != nil {
		return err
	}
	if First(body) != '{' {
		return fmt.Errorf("record is not a JSON object")
	}
	return nil
}

// CheckJSON returns an error if body is not JSON of acceptable size.
func CheckJSON(body []byte) error {
	if len(body) > MaxRecord {
		return fmt.Errorf("record has %d bytes, at most %d are read", len(body), MaxRecord)
	}
	if !isJSON(body) {
		return fmt.Errorf("record is not valid JSON")
	}
	return nil
}

// isJSON reports whether body is valid JSON. gjson takes less than half the time of json.Valid, but
// it has no limit of depth and would overflow the stack.
func isJSON(body []byte) bool {
	if mostDepth(body) > MaxEntryDepth {
		return json.Valid(body)
	}
	return gjson.ValidBytes(body)
}

// mostDepth returns an upper bound of how deep JSON is nested.
func mostDepth(body []byte) int {
	return bytes.Count(body, []byte{'['}) + bytes.Count(body, []byte{'{'})
}

// CheckDepth returns an error if valid JSON is nested too deep to be put into something else.
func CheckDepth(body []byte, limit int) error {
	if mostDepth(body) <= limit {
		return nil
	}
	depth, text := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case !text && (c == '[' || c == '{'):
			depth++
		case !text && (c == ']' || c == '}'):
			depth--
		}
		if depth > limit {
			return fmt.Errorf("record is nested deeper than %d levels", limit)
		}
	}
	return nil
}

// First returns the first byte of valid JSON.
func First(body []byte) byte { return bytes.TrimLeft(body, " \t\r\n")[0] }

// Has reports whether a member is given, and not null.
func (o Object) Has(name string) bool {
	v, ok := o.Get(name)
	return ok && v.Type != gjson.Null
}

// Text returns an optional string. It refuses text that cannot be written back unchanged: lone
// surrogates, and bytes that are not UTF-8.
func (o Object) Text(name string) (string, error) {
	if !o.Has(name) {
		return "", nil
	}
	return TextOf(name, o.At(name))
}

// TextOf returns the value of a member as a string. It refuses the same text as Text.
func TextOf(name string, v gjson.Result) (string, error) {
	if v.Type != gjson.String {
		return "", fmt.Errorf("member %q must be a string", name)
	}
	if !utf8.ValidString(v.Raw) || hasLoneSurrogate(v.Raw) {
		return "", fmt.Errorf("member %q is not valid Unicode", name)
	}
	return v.String(), nil
}

// hasLoneSurrogate reports whether a JSON string has an escape that is half a character. Parsers
// differ on what it means.
func hasLoneSurrogate(raw string) bool {
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			return false
		}
		raw = raw[i:]
		r, ok := unicodeEscape(raw)
		switch {
		case !ok:
			raw = raw[2:]
			continue
		case utf16.IsSurrogate(r):
			low, _ := unicodeEscape(raw[6:])
			if utf16.DecodeRune(r, low) == utf8.RuneError {
				return true
			}
			raw = raw[6:]
		}
		raw = raw[6:]
	}
}

// unicodeEscape returns the character of the \uXXXX at the beginning of valid JSON.
func unicodeEscape(raw string) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(raw[2:6], 16, 16)
	return rune(n), err == nil
}

// Loose returns an optional text that is only shown. Any value becomes valid UTF-8.
func (o Object) Loose(name string) string {
	if !o.Has(name) {
		return ""
	}
	return strings.ToValidUTF8(o.At(name).String(), "\uFFFD")
}

// Count returns an optional integer from 0 to limit.
func (o Object) Count(name string, limit int64) (int64, error) {
	if !o.Has(name) {
		return 0, nil
	}
	v := o.At(name)
	n := v.Int()
	if v.Type != gjson.Number || v.Num != float64(n) || n < 0 || n > limit {
		return 0, fmt.Errorf("member %q must be a whole number from 0 to %d", name, limit)
	}
	return n, nil
}

// Time returns an optional time, or the zero time.
func (o Object) Time(name string) (time.Time, error) {
	if !o.Has(name) {
		return time.Time{}, nil
	}
	return ParseTime(name, o.At(name))
}

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

// Seconds returns t as the formats write it.
func Seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Flag returns an optional boolean.
func (o Object) Flag(name string, otherwise bool) (bool, error) {
	if !o.Has(name) {
		return otherwise, nil
	}
	v := o.At(name)
	if v.Type != gjson.True && v.Type != gjson.False {
		return false, fmt.Errorf("member %q must be true or false", name)
	}
	return v.Bool(), nil
}

// Texts returns an optional array of strings.
func (o Object) Texts(name string) ([]string, error) {
	if !o.Has(name) {
		return nil, nil
	}
	v := o.At(name)
	if !v.IsArray() {
		return nil, fmt.Errorf("member %q must be an array of strings", name)
	}
	var all []string
	valid := true
	// Array would take ten times the size of the record.
	v.ForEach(func(_, item gjson.Result) bool {
		if valid = item.Type == gjson.String; valid && len(all) < MaxTexts {
			all = append(all, strings.ToValidUTF8(item.String(), "\uFFFD"))
		}
		return valid
	})
	if !valid {
		return nil, fmt.Errorf("member %q must be an array of strings", name)
	}
	return all, nil
}

// MaxTexts is how many strings of an array are read. They are only shown.
const MaxTexts = 1000

func without(set map[string]bool, name string) map[string]bool {
	rest := maps.Clone(set)
	delete(rest, name)
	return rest
}

// Set returns a set of names for ParseObject.
func Set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

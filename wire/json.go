package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// MaxRecord is the largest record that is read, in bytes.
const MaxRecord = 16 << 20

// How deep records may be nested. encoding/json reads 10,000 levels; a job must still fit into an entry, and an entry into the journal.
const (
	maxEntryDepth = 9_998
	maxJobDepth   = maxEntryDepth - 1
)

// object is the members of a JSON object that Millrace knows: so few that looking through them is sooner done than hashing.
type object []knownMember

type knownMember struct {
	name  string
	value gjson.Result
}

// get gives a member; given is false if there is none.
func (o object) get(name string) (value gjson.Result, given bool) {
	for i := range o {
		if o[i].name == name {
			return o[i].value, true
		}
	}
	return gjson.Result{}, false
}

// at gives a member, and the zero Result if there is none.
func (o object) at(name string) gjson.Result {
	value, _ := o.get(name)
	return value
}

// parseObject reads the members in known. Others are left alone, whatever they are. A known member that stands twice or is written
// with escapes is refused: Millrace edits in place, and parsers differ on which of two they read.
func parseObject(raw string, known map[string]bool) (object, error) {
	found := make(object, 0, 8)
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
		if _, twice := found.get(name); twice {
			fault = fmt.Errorf("member %q stands twice", name)
			return false
		}
		found = append(found, knownMember{name, value})
		return true
	})
	return found, fault
}

// checkRecord refuses what is no JSON object of acceptable size.
func checkRecord(body []byte) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	if begin(body) != '{' {
		return fmt.Errorf("record is not a JSON object")
	}
	return nil
}

// checkJSON refuses what is no JSON of acceptable size.
func checkJSON(body []byte) error {
	if len(body) > MaxRecord {
		return fmt.Errorf("record has %d bytes, at most %d are read", len(body), MaxRecord)
	}
	if !isJSON(body) {
		return fmt.Errorf("record is not valid JSON")
	}
	return nil
}

// isJSON is json.Valid. gjson says the same in less than half of the time, but has no limit of depth and would overflow the stack.
func isJSON(body []byte) bool {
	if mostDepth(body) > maxEntryDepth {
		return json.Valid(body)
	}
	return gjson.ValidBytes(body)
}

// mostDepth is how deep a text can be nested at most, if it is JSON.
func mostDepth(body []byte) int {
	return bytes.Count(body, []byte{'['}) + bytes.Count(body, []byte{'{'})
}

// checkDepth refuses valid JSON that is nested too deep to be put into something else.
func checkDepth(body []byte, limit int) error {
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

// begin is the first byte of valid JSON.
func begin(body []byte) byte { return bytes.TrimLeft(body, " \t\r\n")[0] }

func (o object) has(name string) bool {
	v, ok := o.get(name)
	return ok && v.Type != gjson.Null
}

// text reads an optional string. What cannot be written back as it was (lone surrogates, bytes that are not UTF-8) is refused.
func (o object) text(name string) (string, error) {
	if !o.has(name) {
		return "", nil
	}
	return textOf(name, o.at(name))
}

func textOf(name string, v gjson.Result) (string, error) {
	if v.Type != gjson.String {
		return "", fmt.Errorf("member %q must be a string", name)
	}
	if !utf8.ValidString(v.Raw) || hasLoneSurrogate(v.Raw) {
		return "", fmt.Errorf("member %q is not valid Unicode", name)
	}
	return v.String(), nil
}

// hasLoneSurrogate tells whether a JSON string has an escape that is half of a character. Parsers differ on what it becomes.
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

// unicodeEscape reads the \uXXXX that valid JSON begins with.
func unicodeEscape(raw string) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(raw[2:6], 16, 16)
	return rune(n), err == nil
}

// loose reads an optional text that is only shown: whatever stands there becomes valid UTF-8.
func (o object) loose(name string) string {
	if !o.has(name) {
		return ""
	}
	return strings.ToValidUTF8(o.at(name).String(), "\uFFFD")
}

// count reads an optional whole number from 0 to limit.
func (o object) count(name string, limit int64) (int64, error) {
	if !o.has(name) {
		return 0, nil
	}
	v := o.at(name)
	n := v.Int()
	if v.Type != gjson.Number || v.Num != float64(n) || n < 0 || n > limit {
		return 0, fmt.Errorf("member %q must be a whole number from 0 to %d", name, limit)
	}
	return n, nil
}

func (o object) flag(name string, otherwise bool) (bool, error) {
	if !o.has(name) {
		return otherwise, nil
	}
	v := o.at(name)
	if v.Type != gjson.True && v.Type != gjson.False {
		return false, fmt.Errorf("member %q must be true or false", name)
	}
	return v.Bool(), nil
}

func (o object) texts(name string) ([]string, error) {
	if !o.has(name) {
		return nil, nil
	}
	v := o.at(name)
	if !v.IsArray() {
		return nil, fmt.Errorf("member %q must be an array of strings", name)
	}
	var all []string
	valid := true
	v.ForEach(func(_, item gjson.Result) bool { // not Array, which would take ten times the record's size
		if valid = item.Type == gjson.String; valid && len(all) < maxTexts {
			all = append(all, strings.ToValidUTF8(item.String(), "\uFFFD"))
		}
		return valid
	})
	if !valid {
		return nil, fmt.Errorf("member %q must be an array of strings", name)
	}
	return all, nil
}

// maxTexts is how many strings of an array are read; they are only shown.
const maxTexts = 1000

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

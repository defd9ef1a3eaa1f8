package fieldmap

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// Apply returns the job that an object becomes. The object must be valid JSON. Fields without a
// value are left out.
func (m *Map) Apply(object []byte) ([]byte, error) {
	line := gjson.ParseBytes(object)
	if !line.IsObject() {
		return nil, fmt.Errorf("it is no JSON object")
	}
	return appendObject(nil, m.fields, line)
}

// Unseen returns the fields for which no object had a value so far, each with its path.
func (m *Map) Unseen() (all []string) {
	for i := range m.fields {
		if f := &m.fields[i]; !f.seen {
			all = append(all, f.name+" ("+f.from.path+")")
		}
	}
	return all
}

func appendObject(to []byte, fields []field, line gjson.Result) ([]byte, error) {
	to = append(to, '{')
	for i := range fields {
		f := &fields[i]
		raw, err := f.from.value(line, f.kind)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if raw == "" {
			continue
		}
		f.seen = true
		if to[len(to)-1] != '{' {
			to = append(to, ',')
		}
		to = append(append(append(to, quote(f.name)...), ':'), raw...)
	}
	return append(to, '}'), nil
}

// value returns a value as JSON, or "" if there is none.
func (s *source) value(line gjson.Result, k kind) (string, error) {
	raw, err := s.find(line)
	if err != nil {
		return "", err
	}
	if raw == "" || raw == "null" {
		raw = s.fallback
	}
	if raw == "" || raw == "null" {
		return "", nil
	}
	found := gjson.Parse(raw)
	if s.parse && found.Type == gjson.String {
		if !gjson.Valid(found.Str) {
			return "", s.wrong(found, "is a text that is not valid JSON")
		}
		raw = strings.TrimSpace(found.Str)
		found = gjson.Parse(raw)
	}
	switch k {
	case text:
		return s.text(found)
	case number:
		return s.number(found)
	case moment:
		return s.moment(found)
	case trace:
		return s.trace(found)
	}
	return raw, nil
}

func (s *source) find(line gjson.Result) (string, error) {
	switch {
	case s.list != nil:
		return s.array(line)
	case s.object != nil:
		raw, err := appendObject(nil, s.object, line)
		return string(raw), err
	case s.constant != "":
		return s.constant, nil
	}
	for _, p := range s.paths {
		if found := p.in(line); found.Type != gjson.Null {
			return found.Raw, nil
		}
	}
	return "", nil
}

// last is the step to the last item of an array.
const last = "-1"

// in follows the path from a value. It also leads into a text that is JSON.
func (p path) in(v gjson.Result) gjson.Result {
	for _, step := range p {
		if v.Type == gjson.String && gjson.Valid(v.Str) {
			v = gjson.Parse(v.Str)
		}
		if v.IsArray() && step == last {
			items := v.Array()
			if len(items) == 0 {
				return gjson.Result{}
			}
			v = items[len(items)-1]
			continue
		}
		v = v.Get(gjson.Escape(step))
	}
	return v
}

// array returns a list of values. A missing value is null, so that the others keep their places.
func (s *source) array(line gjson.Result) (string, error) {
	items := make([]string, len(s.list))
	for i := range s.list {
		raw, err := s.list[i].value(line, anyValue)
		if err != nil {
			return "", err
		}
		if items[i] = raw; raw == "" {
			items[i] = "null"
		}
	}
	return "[" + strings.Join(items, ",") + "]", nil
}

// wrong returns an error that names the path and shows the value.
func (s *source) wrong(v gjson.Result, format string, args ...any) error {
	where := s.path
	if where == "" {
		where = "the constant"
	}
	return fmt.Errorf("%s (%s) "+format, append([]any{where, wire.Shorten(v.Raw, 60)}, args...)...)
}

func (s *source) text(v gjson.Result) (string, error) {
	switch {
	case v.Type == gjson.String && s.prefix == "":
		return v.Raw, nil
	case v.Type == gjson.String:
		return quote(s.prefix + v.Str), nil
	case v.Type == gjson.Number:
		return quote(s.prefix + v.Raw), nil
	}
	return "", s.wrong(v, "is neither a text nor a number")
}

// trace returns a text. A list becomes its lines.
func (s *source) trace(v gjson.Result) (string, error) {
	if !v.IsArray() {
		return s.text(v)
	}
	var lines []string
	for _, item := range v.Array() {
		lines = append(lines, item.String())
	}
	return quote(strings.Join(lines, "\n")), nil
}

func (s *source) number(v gjson.Result) (string, error) {
	raw, n, ok := numberOf(v)
	switch {
	case !ok:
		return "", s.wrong(v, "is no number")
	case s.scale == nil:
		return raw, nil
	}
	share := (n - s.scale.low) / (s.scale.high - s.scale.low)
	if share < 0 || share > 1 {
		return "", s.wrong(v, "is outside of the range %v to %v", s.scale.low, s.scale.high)
	}
	return strconv.Itoa(int(math.Round(share * wire.MaxPriority))), nil
}

// numberOf returns a number, also one that is written as a text.
func numberOf(v gjson.Result) (raw string, n float64, ok bool) {
	switch v.Type {
	case gjson.Number:
		return v.Raw, v.Num, true
	case gjson.String:
		inner := gjson.Parse(v.Str)
		return v.Str, inner.Num, inner.Type == gjson.Number && gjson.Valid(v.Str)
	}
	return "", 0, false
}

// quote returns a text as a JSON string.
func quote(s string) string { return string(gjson.AppendJSONString(nil, s)) }

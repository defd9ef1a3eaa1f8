package httpapi

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// DefaultHideArgs matches the names of members whose values are not for all users.
const DefaultHideArgs = `passw|secret|token|api[-_]?key|private[-_]?key|authori[sz]ation|credential|cookie`

// hidden stands for a value that is not shown.
const hidden = `"[hidden]"`

// ParseHideArgs compiles a pattern, which ignores case; an empty one hides nothing.
func ParseHideArgs(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil
	}
	names, err := regexp.Compile(`(?i)` + pattern)
	if err != nil {
		return nil, fmt.Errorf("httpapi: which arguments to hide: %w", err)
	}
	return names, nil
}

// redactor hides the values of members whose names match from users who may only read. Users who
// may act see all: a change of what they do not see would destroy it. A nil redactor hides nothing.
type redactor struct{ names *regexp.Regexp }

// from returns what hides members from a principal; nil if the principal may see all.
func (h *redactor) from(p auth.Principal) *redactor {
	if p.Role.Allows(auth.Act) || h.names == nil {
		return nil
	}
	return h
}

// of returns what hides members from the user behind a request.
func (h *redactor) of(in *problem.Request) *redactor { return h.from(auth.PrincipalOf(in.Request())) }

// hides reports whether the values of members with a name are hidden.
func (h *redactor) hides(name string) bool { return h != nil && h.names.MatchString(name) }

// record returns a record of valid JSON as it is shown: the same bytes where nothing is hidden.
func (h *redactor) record(raw []byte) (shown []byte, hid bool) {
	if h == nil {
		return raw, false
	}
	text := string(raw)
	var spans []span
	h.find(gjson.Parse(text), &spans)
	if len(spans) == 0 {
		return raw, false
	}
	out, from := make([]byte, 0, len(raw)), 0
	for _, s := range spans {
		out = append(append(out, text[from:s.from]...), hidden...)
		from = s.to
	}
	return append(out, text[from:]...), true
}

// anything is record for bytes that may be no record. It shows nothing of what it cannot parse.
func (h *redactor) anything(raw []byte) (shown []byte, hid bool) {
	if h == nil || json.Valid(raw) {
		return h.record(raw)
	}
	return nil, true
}

// span is the place of a value that is hidden.
type span struct{ from, to int }

// find adds the spans of a value, in order. Records are no deeper than encoding/json reads.
func (h *redactor) find(v gjson.Result, spans *[]span) {
	if !v.IsObject() && !v.IsArray() {
		return
	}
	v.ForEach(func(key, value gjson.Result) bool {
		if v.IsObject() && h.hides(wire.TextOf(key)) {
			*spans = append(*spans, span{value.Index, value.Index + len(value.Raw)})
			return true
		}
		h.find(value, spans)
		return true
	})
}

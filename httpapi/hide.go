package httpapi

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/tidwall/gjson"
)

// DefaultHideArgs finds the names of members whose values are not for everybody.
const DefaultHideArgs = `passw|secret|token|api[-_]?key|private[-_]?key|authori[sz]ation|credential|cookie`

// hidden stands where a value is not shown.
const hidden = `"[hidden]"`

// hider takes values out of records for roles that may only look: those of members whose names a pattern matches, wherever they stand.
// Whoever may act sees them, since changing what one does not see would destroy it.
type hider struct{ names *regexp.Regexp }

// ParseHideArgs reads a pattern, which matches without regard to case; an empty one hides nothing.
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

// hiderFor is what hides from somebody; nil for those who see everything.
func (s *Server) hiderFor(w who) *hider {
	if w.role.access() >= acts || s.cfg.HideArgs == nil {
		return nil
	}
	return &hider{s.cfg.HideArgs}
}

// hides reports whether the values of members with a name are hidden.
func (h *hider) hides(name string) bool { return h != nil && h.names.MatchString(name) }

// record is a record of valid JSON as it is shown. It is the same bytes where nothing is hidden.
func (h *hider) record(raw []byte) (shown []byte, hid bool) {
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

// anything is record for bytes that may be no record. What cannot be looked into is not shown at all.
func (h *hider) anything(raw []byte) (shown []byte, hid bool) {
	if h == nil || json.Valid(raw) {
		return h.record(raw)
	}
	return nil, true
}

// span is where a value stands that is not shown.
type span struct{ from, to int }

// find looks for what is hidden, in the order in which it stands. Records are no deeper than encoding/json reads.
func (h *hider) find(v gjson.Result, spans *[]span) {
	if !v.IsObject() && !v.IsArray() {
		return
	}
	v.ForEach(func(key, value gjson.Result) bool {
		if v.IsObject() && h.hides(key.String()) {
			*spans = append(*spans, span{value.Index, value.Index + len(value.Raw)})
			return true
		}
		h.find(value, spans)
		return true
	})
}

package tracker

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// Contents is the part of a filter that looks into records. Empty fields match all records.
type Contents struct {
	Text    string   // is in the record; ASCII letters match in both cases
	Error   string   // the error class, or the fingerprint of the failure
	Tag     string   // is among the tags of the job
	Args    string   // the path of a value in the arguments, and its text: see wire.SplitArgs
	needles [][]byte // Text in every encoding that JSON allows
	path    []string // of Args; nil if Args is not valid, which matches no record
	value   string   // of Args
	number  string   // value in normal form, if it is a number
}

// NewContents prepares a filter.
func NewContents(failure, tag, text, args string) Contents {
	c := Contents{Text: text, Error: failure, Tag: tag, Args: args}
	if text != "" {
		c.needles = wire.Spellings(text)
	}
	if path, value, err := wire.SplitArgs(args); err == nil {
		c.path, c.value, c.number = path, value, normalNumber(value)
	}
	return c
}

// LooksInside reports whether the filter needs the record.
func (c *Contents) LooksInside() bool { return c.Searches() || c.Error != "" || c.Tag != "" }

// Searches reports whether the filter looks for values that may be hidden from a user.
func (c *Contents) Searches() bool { return c.Text != "" || c.Args != "" }

// Match reports whether an entry matches of which the view has the record. shown is what may be
// found of the record. scratch is a buffer for reuse.
func (c *Contents) Match(s *Stored, shown []byte, scratch *[]byte) bool {
	if c.Text != "" && !c.Contains(shown, scratch) || c.Args != "" && !c.hasArg(s.Stream, shown) {
		return false
	}
	if c.Error == "" && c.Tag == "" {
		return true
	}
	e, err := s.Entry(nil)
	return err == nil && c.failed(&e) && (c.Tag == "" || slices.Contains(e.Job.Tags, c.Tag))
}

// Contains reports whether a record has the text.
func (c *Contents) Contains(record []byte, scratch *[]byte) bool {
	*scratch = wire.LowerASCII(append((*scratch)[:0], record...))
	return slices.ContainsFunc(c.needles, func(n []byte) bool { return bytes.Contains(*scratch, n) })
}

func (c *Contents) failed(e *wire.Entry) bool {
	if wire.IsFingerprint(c.Error) {
		return wire.Fingerprint(e.Job.Class, e.ErrorClass, e.ErrorMessage) == c.Error
	}
	return c.Error == "" || e.ErrorClass == c.Error
}

// hasArg reports whether a record has the value at the path.
func (c *Contents) hasArg(stream string, record []byte) bool {
	at := arg(stream, record, c.path...)
	if c.path == nil || !at.Exists() {
		return false
	}
	switch at.Type {
	case gjson.JSON:
		return false
	case gjson.String:
		return wire.TextOf(at) == c.value
	case gjson.Number:
		return at.Raw == c.value || c.number != "" && normalNumber(at.Raw) == c.number
	}
	return at.Raw == c.value // null, true or false
}

// numberForm matches a number of JSON: its sign, its digits before and after the point, and its
// exponent.
var numberForm = regexp.MustCompile(`^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$`)

// normalNumber returns the same text for all spellings of a number, without rounding it. It returns
// "" if the text is not a number of JSON, or has a huge exponent.
func normalNumber(text string) string {
	m := numberForm.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	sign, digits, exponent := m[1], strings.TrimLeft(m[2]+m[3], "0"), 0
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0"
	}
	if m[4] != "" {
		n, err := strconv.ParseInt(m[4], 10, 32)
		if err != nil {
			return ""
		}
		exponent = int(n)
	}
	exponent += len(digits) - len(significant) - len(m[3])
	return sign + significant + "e" + strconv.Itoa(exponent)
}

// Matcher chooses entries: those of a bulk operation, and those that a list shows. Empty members
// match all entries.
type Matcher struct {
	Queue, Class, JID string
	From, To          time.Time // From ≤ at < To
	Contents
	scratch []byte
}

// NewMatcher prepares the filter of a bulk operation; nil chooses everything.
func NewMatcher(f *wire.Filter) *Matcher {
	if f == nil {
		return &Matcher{}
	}
	return &Matcher{Queue: f.Queue, Class: f.Class, JID: f.JID, From: timeOf(f.From), To: timeOf(f.To), Contents: NewContents(f.Error, f.Tag, f.Text, f.Args)}
}

func timeOf(seconds *float64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return wire.FromSeconds(*seconds)
}

// Match reports whether a filter chooses an entry. A filter that looks inside records chooses none
// over 64 KiB.
func (m *Matcher) Match(s *Stored) bool {
	return m.named(s.Queue, s.Class, s.JID) && m.Within(s.At) && (!m.LooksInside() || s.Raw != nil && m.Contents.Match(s, s.Raw, &m.scratch))
}

// MatchRow reports whether an entry may match, judging by the names in its row of a list.
func (m *Matcher) MatchRow(r *Row) bool { return m.named(r.Queue, r.Class, r.JID) }

func (m *Matcher) named(queue, class, jid string) bool {
	return (m.Queue == "" || queue == m.Queue) && (m.Class == "" || class == m.Class) && (m.JID == "" || jid == m.JID)
}

// Within reports whether a time lies within those of the filter.
func (m *Matcher) Within(at time.Time) bool {
	return (m.From.IsZero() || !at.Before(m.From)) && (m.To.IsZero() || at.Before(m.To))
}

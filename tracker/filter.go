package tracker

import (
	"bytes"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Contents is the part of a filter that looks into records. Empty fields match all records.
type Contents struct {
	Text    string   // is in the record; ASCII letters match in both cases
	Error   string   // the error class, or the fingerprint of the failure
	Tag     string   // is among the tags of the job
	needles [][]byte // Text in every encoding that JSON allows
}

// NewContents prepares a filter.
func NewContents(failure, tag, text string) Contents {
	c := Contents{Text: text, Error: failure, Tag: tag}
	if text != "" {
		c.needles = wire.Spellings(text)
	}
	return c
}

// LooksInside reports whether the filter needs the record.
func (c *Contents) LooksInside() bool { return c.Text != "" || c.Error != "" || c.Tag != "" }

// Match reports whether an entry matches of which the view has the record. shown is what may be
// found of the record. scratch is a buffer for reuse.
func (c *Contents) Match(s *Stored, shown []byte, scratch *[]byte) bool {
	if c.Text != "" && !c.Contains(shown, scratch) {
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

// Matcher matches entries with the filter of a bulk operation.
type Matcher struct {
	queue, class, jid string
	from, to          time.Time
	contents          Contents
	scratch           []byte
}

// NewMatcher prepares a filter; nil chooses everything.
func NewMatcher(f *wire.Filter) *Matcher {
	if f == nil {
		return &Matcher{}
	}
	return &Matcher{queue: f.Queue, class: f.Class, jid: f.JID, from: timeOf(f.From), to: timeOf(f.To), contents: NewContents(f.Error, f.Tag, f.Text)}
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
	return (m.queue == "" || s.Queue == m.queue) && (m.class == "" || s.Class == m.class) && (m.jid == "" || s.JID == m.jid) &&
		(m.from.IsZero() || !s.At.Before(m.from)) && (m.to.IsZero() || s.At.Before(m.to)) &&
		(!m.contents.LooksInside() || s.Raw != nil && m.contents.Match(s, s.Raw, &m.scratch))
}

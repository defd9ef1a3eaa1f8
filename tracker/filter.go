package tracker

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Matcher matches entries with a filter.
type Matcher struct {
	wire.Filter
	from, to time.Time
	needles  [][]byte
	scratch  []byte
}

// NewMatcher prepares a filter; nil chooses everything.
func NewMatcher(f *wire.Filter) *Matcher {
	m := &Matcher{}
	if f == nil {
		return m
	}
	m.Filter = *f
	m.from, m.to = timeOf(f.From), timeOf(f.To)
	if f.Text != "" {
		m.needles = wire.Spellings(f.Text)
	}
	return m
}

func timeOf(seconds *float64) time.Time {
	if seconds == nil {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(*seconds * 1e6)))
}

// Match reports whether a filter chooses an entry. A filter that looks inside records chooses none
// over 64 KiB.
func (m *Matcher) Match(s *Stored) bool {
	return (m.Queue == "" || s.Queue == m.Queue) && (m.Class == "" || s.Class == m.Class) && (m.JID == "" || s.JID == m.JID) &&
		(m.from.IsZero() || !s.At.Before(m.from)) && (m.to.IsZero() || s.At.Before(m.to)) && m.inside(s)
}

func (m *Matcher) inside(s *Stored) bool {
	if m.Text == "" && m.Error == "" && m.Tag == "" {
		return true
	}
	if s.Raw == nil {
		return false
	}
	if m.Text != "" {
		m.scratch = wire.LowerASCII(append(m.scratch[:0], s.Raw...))
		if !slices.ContainsFunc(m.needles, func(n []byte) bool { return bytes.Contains(m.scratch, n) }) {
			return false
		}
	}
	if m.Error == "" && m.Tag == "" {
		return true
	}
	e, err := s.Entry(nil)
	return err == nil && m.failed(&e) && (m.Tag == "" || slices.Contains(e.Job.Tags, m.Tag))
}

// failed reports whether an entry has the error class, or the fingerprint, that is asked for.
func (m *Matcher) failed(e *wire.Entry) bool {
	if wire.IsFingerprint(m.Error) {
		return wire.Fingerprint(e.Job.Class, e.ErrorClass, e.ErrorMessage) == m.Error
	}
	return m.Error == "" || e.ErrorClass == m.Error
}

// Package periodic finds the ticks of periodic jobs: the times at which they are due.
package periodic

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"
	_ "time/tzdata" // for machines without time zones

	"github.com/millrace-jobs/millrace/internal/cron"
	"github.com/millrace-jobs/millrace/wire"
)

// Schedule is when a periodic job is due.
type Schedule struct {
	cron   cron.Expression
	every  int64 // seconds; 0: by cron
	zone   *time.Location
	except []dates
	jitter float64
}

// dates are days that are exceptions, as the time zone's calendar has them.
type dates struct{ first, last string }

// Never is a tick that does not come.
const Never = math.MaxInt64

// New returns the schedule of a definition that is complete.
func New(p *wire.Periodic) (*Schedule, error) {
	s := &Schedule{every: p.Every, zone: time.UTC, jitter: p.Jitter}
	var err error
	if p.TZ == "Local" {
		return nil, fmt.Errorf("tz %q differs by machine: name a time zone like Europe/Stockholm", p.TZ)
	}
	if s.zone, err = time.LoadLocation(p.TZ); err != nil {
		return nil, fmt.Errorf("tz %q is not known: name a time zone like Europe/Stockholm", wire.Shorten(p.TZ, 80))
	}
	if p.Every == 0 {
		if s.cron, err = cron.Parse(p.Cron); err != nil {
			return nil, err
		}
	}
	for _, text := range p.Except {
		first, last, err := wire.ExceptDates(text)
		if err != nil {
			return nil, err
		}
		s.except = append(s.except, dates{first.Format(time.DateOnly), last.Format(time.DateOnly)})
	}
	return s, nil
}

// Next returns the first tick after a time, in seconds since 1970, or Never. Ticks of every are
// multiples of it, so that a change of anything else moves none.
func (s *Schedule) Next(after int64) int64 {
	if after == Never {
		return Never
	}
	if s.every > 0 {
		return (after/s.every + 1) * s.every
	}
	next := s.cron.Next(time.Unix(after, 0), s.zone)
	if next.IsZero() {
		return Never
	}
	return next.Unix()
}

// Excepted reports whether the date of a tick is an exception.
func (s *Schedule) Excepted(tick int64) bool {
	if len(s.except) == 0 {
		return false
	}
	date := time.Unix(tick, 0).In(s.zone).Format(time.DateOnly)
	for _, d := range s.except {
		if date >= d.first && date <= d.last {
			return true
		}
	}
	return false
}

// Due returns when the job of a tick is due: up to jitter later, always the same for this tick.
func (s *Schedule) Due(name string, tick int64) float64 {
	due := float64(tick)
	if s.jitter > 0 {
		sum := sha256.Sum256([]byte(name + "\n" + strconv.FormatInt(tick, 10)))
		due += s.jitter * float64(binary.BigEndian.Uint32(sum[:])) / math.MaxUint32
	}
	return math.Ceil(due*1e6) / 1e6
}

// NextOf returns the next ticks of a job without an outcome, those that are exceptions too.
func (s *Schedule) NextOf(j *wire.PeriodicJob, after int64, n int) (ticks []int64) {
	for t := s.Undecided(j, after); t != Never && len(ticks) < n; t = s.Undecided(j, t) {
		ticks = append(ticks, t)
	}
	return ticks
}

// Undecided returns the first tick of a job after a time that has no outcome, or Never.
func (s *Schedule) Undecided(j *wire.PeriodicJob, after int64) int64 {
	t := s.Next(max(after, j.Through))
	for t != Never && j.Decided(t) {
		t = s.Next(t)
	}
	return t
}

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Periodic is the definition of a periodic job: when it is due, and the job that is enqueued then.
// Durations are in seconds.
type Periodic struct {
	Cron       string          `json:"cron,omitempty"`
	Every      int64           `json:"every,omitempty"`
	TZ         string          `json:"tz,omitempty"` // of cron and except; empty means UTC
	Jitter     float64         `json:"jitter,omitempty"`
	CatchUp    string          `json:"catch_up,omitempty"`
	CatchUpMax int             `json:"catch_up_max,omitempty"`
	Grace      *float64        `json:"grace,omitempty"`
	Overlap    string          `json:"overlap,omitempty"`
	Except     []string        `json:"except,omitempty"` // dates, or first..last
	ExpiresIn  float64         `json:"expires_in,omitempty"`
	Paused     bool            `json:"paused,omitempty"`
	Job        json.RawMessage `json:"job,omitempty"`
}

// What becomes of ticks that are late by more than the grace.
const (
	CatchUpSkip = "skip" // none is made up for; the default
	CatchUpLast = "last" // the newest, unless one in time follows
	CatchUpAll  = "all"  // the newest catch_up_max
)

// What becomes of a tick while the job of the last one waits.
const (
	OverlapAllow = "allow" // the default
	OverlapSkip  = "skip"
)

// Limits of periodic jobs.
const (
	MaxPeriodic      = 10_000 // periodic jobs
	MaxCatchUp       = 1000   // ticks
	DefaultCatchUp   = 100
	DefaultGrace     = time.Minute
	maxPeriodSeconds = 366 * 24 * 3600
)

// CheckPeriodicName returns an error if no periodic job can have this name.
func CheckPeriodicName(name string) error {
	if !definedName.MatchString(name) {
		return fmt.Errorf("%.80q is no name of a periodic job: use 1 to 64 letters, digits, dots, hyphens and underscores", name)
	}
	return nil
}

// ParsePeriodic parses a definition, or a layer of one, and checks what is there.
func ParsePeriodic(raw []byte) (p Periodic, err error) {
	if err := decodeLayer(raw, &p); err != nil {
		return p, err
	}
	return p, p.check()
}

func (p *Periodic) check() error {
	for name, n := range map[string]float64{"every": float64(p.Every), "jitter": p.Jitter, "expires_in": p.ExpiresIn, "grace": p.grace()} {
		if n < 0 || n > maxPeriodSeconds {
			return fmt.Errorf("member %q is a number of seconds from 0 to %d", name, maxPeriodSeconds)
		}
	}
	switch {
	case p.Cron != "" && p.Every != 0:
		return errors.New("cron and every exclude each other")
	case !slices.Contains([]string{"", CatchUpSkip, CatchUpLast, CatchUpAll}, p.CatchUp):
		return fmt.Errorf("catch_up %.40q is not known: use skip, last or all", p.CatchUp)
	case !slices.Contains([]string{"", OverlapAllow, OverlapSkip}, p.Overlap):
		return fmt.Errorf("overlap %.40q is not known: use allow or skip", p.Overlap)
	case p.CatchUpMax < 0 || p.CatchUpMax > MaxCatchUp:
		return fmt.Errorf("catch_up_max is a number from 1 to %d", MaxCatchUp)
	}
	for _, dates := range p.Except {
		if _, _, err := ExceptDates(dates); err != nil {
			return err
		}
	}
	return nil
}

func (p *Periodic) grace() float64 {
	if p.Grace == nil {
		return DefaultGrace.Seconds()
	}
	return *p.Grace
}

// GraceTime returns how late a tick may be without being missed.
func (p *Periodic) GraceTime() time.Duration {
	return time.Duration(p.grace() * float64(time.Second))
}

// ExceptDates parses an exception: a date, or the first and the last of several.
func ExceptDates(text string) (first, last time.Time, err error) {
	from, to, several := strings.Cut(text, "..")
	if !several {
		to = from
	}
	first, err = time.Parse(time.DateOnly, from)
	if err == nil {
		last, err = time.Parse(time.DateOnly, to)
	}
	if err != nil || last.Before(first) {
		return first, last, fmt.Errorf("except has %.40q: write a date like 2026-12-24, or 2026-12-24..2026-12-26", text)
	}
	return first, last, nil
}

// reserved are the members of a job that belong to the tick.
var reserved = []string{"jid", "periodic", "expires_at", "retry_count"}

// CheckWhole returns an error if the definition is not complete.
func (p *Periodic) CheckWhole() error {
	if p.Cron == "" && p.Every == 0 {
		return errors.New("it does not say when it is due: give cron or every")
	}
	if len(p.Job) == 0 {
		return errors.New("it has no job: give job, an object with a class")
	}
	if _, err := ParseJob(p.Job); err != nil {
		return err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.Job, &members); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	for _, name := range reserved {
		if _, given := members[name]; given {
			return fmt.Errorf("the job has a member %q, which each tick sets", name)
		}
	}
	return nil
}

// MergePeriodic merges the layers of a definition, the weakest first. A later layer wins, member by
// member, and so do the members of its job.
func MergePeriodic(layers ...json.RawMessage) (json.RawMessage, error) {
	merged, job := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, layer := range layers {
		var members, itsJob map[string]json.RawMessage
		if err := json.Unmarshal(layer, &members); err != nil {
			return nil, fmt.Errorf("definition: %w", err)
		}
		if members["cron"] != nil || members["every"] != nil {
			delete(merged, "cron")
			delete(merged, "every")
		}
		if raw := members["job"]; raw != nil {
			if err := json.Unmarshal(raw, &itsJob); err != nil {
				return nil, errors.New("definition: job must be an object")
			}
		}
		maps.Copy(merged, members)
		maps.Copy(job, itsJob)
	}
	if len(job) > 0 {
		raw, err := json.Marshal(job)
		if err != nil {
			return nil, fmt.Errorf("definition: %w", err)
		}
		merged["job"] = raw
	}
	return json.Marshal(merged)
}

// Merged returns the definition that the layers of a job make.
func (j *PeriodicJob) Merged() (json.RawMessage, error) {
	var layers []json.RawMessage
	for _, name := range Layers {
		if l, set := j.Layers[name]; set {
			layers = append(layers, l.Value)
		}
	}
	return MergePeriodic(layers...)
}

// Definition returns the merged definition. It returns an error if that is not complete.
func (j *PeriodicJob) Definition() (Periodic, error) {
	merged, err := j.Merged()
	if err != nil {
		return Periodic{}, err
	}
	return ParseWhole(merged)
}

// ParseWhole parses a merged definition. It returns an error if that is not complete.
func ParseWhole(merged []byte) (Periodic, error) {
	p, err := ParsePeriodic(merged)
	if err != nil {
		return p, err
	}
	return p, p.CheckWhole()
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/tracker/metrics"
)

// timelineSettings say how much is kept of what workers report of single jobs.
type timelineSettings struct {
	TimelineRetention string `name:"timeline-retention" env:"MILLRACE_TIMELINE_RETENTION" placeholder:"AGE,SIZE" help:"How long workers' reports of single jobs are kept, and how much of them: 30d, 2GB or both with a comma. Default: 72h and 128MiB."`
}

var sizeForm = regexp.MustCompile(`^([1-9][0-9]{0,5})(MB|MiB|GB|GiB)$`)

var sizeUnits = map[string]int64{"MB": 1e6, "MiB": 1 << 20, "GB": 1e9, "GiB": 1 << 30}

// parseSize reads a size in bytes.
func parseSize(s string) (int64, error) {
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is no size: write 512MB or 2GB", s)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n * sizeUnits[m[2]], err
}

// smallestRun is about the smallest size of a report, in bytes. It bounds the number of reports
// where a size is given.
const smallestRun = 32

// timelines returns the bounds that are given: an age, a size, or both with a comma in between. No
// bounds mean the defaults.
func (s *timelineSettings) timelines() (b metrics.RunBounds, err error) {
	if s.TimelineRetention == "" {
		return b, nil
	}
	for part := range strings.SplitSeq(s.TimelineRetention, ",") {
		part = strings.TrimSpace(part)
		if size, err := parseSize(part); err == nil && b.Bytes == 0 {
			b.Bytes, b.Runs = size, size/smallestRun
			continue
		}
		d, err := humantime.ParseDuration(part)
		if err != nil || d <= 0 || b.Age != 0 {
			return b, fmt.Errorf("--timeline-retention: %q must be an age, a size, or both, such as 72h, 2GB or 30d,2GB", s.TimelineRetention)
		}
		b.Age = d
	}
	return b, nil
}

// defaultTimelineAge is how long metrics.RunBounds keep reports if they have no age.
const defaultTimelineAge = 72 * time.Hour

// timelineAge returns how long reports are kept.
func (s *timelineSettings) timelineAge() time.Duration {
	kept, _ := s.timelines() // checked before
	return cmp.Or(kept.Age, defaultTimelineAge)
}

// deadSettings say how many dead jobs are kept.
type deadSettings struct {
	DeadMax int    `name:"dead-max" env:"MILLRACE_DEAD_MAX" default:"1000000" help:"How many dead jobs are kept, the newest; in addition, a tenth as many that queues dropped."`
	DeadAge string `name:"dead-age" env:"MILLRACE_DEAD_AGE" default:"180d" placeholder:"DURATION" help:"How long dead jobs are kept: 12h, 30d (${default})."`
}

// checkDead returns an error for bounds under which no dead job would be kept.
func (s *deadSettings) checkDead() error {
	if s.DeadMax < 0 {
		return errors.New("--dead-max: must be 1 or more")
	}
	if s.DeadAge == "" {
		return nil
	}
	if d, err := humantime.ParseDuration(s.DeadAge); err != nil || d <= 0 {
		return fmt.Errorf("--dead-age: %w", humantime.InvalidDuration(s.DeadAge))
	}
	return nil
}

// deadAge returns how long dead jobs are kept, which AfterApply has checked; 0 means the default.
func (s *deadSettings) deadAge() time.Duration {
	d, _ := humantime.ParseDuration(s.DeadAge)
	return d
}

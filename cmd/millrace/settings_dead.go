package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
)

// checkDead refuses bounds under which no dead job would be kept.
func (s *sidecarSettings) checkDead() error {
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

// deadAge is how long dead jobs are kept, which AfterApply has checked; 0 for the default.
func (s *sidecarSettings) deadAge() time.Duration {
	d, _ := humantime.ParseDuration(s.DeadAge)
	return d
}

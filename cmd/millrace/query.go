package main

import (
	"fmt"
	"net/url"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
)

// span chooses a range of time.
type span struct {
	From string `placeholder:"TIME" help:"Only from this time on: 2026-12-24 18:00, 18:00, or any other form that millrace schedule --at takes."`
	To   string `placeholder:"TIME" help:"Only before this time."`
}

// set puts into a query what was given of a span.
func (s *span) set(query url.Values) error {
	return setTimes(query, map[string]string{"from": s.From, "to": s.To}, time.Now())
}

// setGiven puts into a query what was given.
func setGiven(query url.Values, values map[string]string) {
	for name, value := range values {
		if value != "" {
			query.Set(name, value)
		}
	}
}

// setTimes puts into a query the times that were given.
func setTimes(query url.Values, times map[string]string, now time.Time) error {
	for name, text := range times {
		if text == "" {
			continue
		}
		at, err := humantime.Parse(text, now)
		if err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
		query.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

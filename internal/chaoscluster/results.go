package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// results is the table that is printed, and the file.
type results struct {
	path         string
	out          io.Writer
	runs, broken int
}

// add prints a result and appends it to the file.
func (t *results) add(res result) error {
	t.runs++
	verdict := "holds"
	if len(res.Broken) > 0 || res.Error != "" {
		t.broken++
		verdict = "BROKEN: " + strings.Join(res.Broken, "; ")
	}
	if res.Restarted {
		verdict += " (the frozen node did not find the others again, and was started again)"
	}
	if res.Error != "" {
		verdict = "VOID: " + strings.ReplaceAll(res.Error, "\n", "; ")
	}
	if res.Flow != "" {
		verdict = res.Flow + ": " + verdict
	}
	d := res.Doubled
	fmt.Fprintf(t.out, "%s row %d (%s), run %d, seed %d, load %s: %d jobs, lost %d, doubled %d (journaled %d, stale %d, answered %d, nacked %d, open %d, bare %d, unseen %d, unkept %d, stored twice %d), "+
		"redelivered %d, again %d, exits %d, open at most %d, standstill %.1f s (one queue, %s: %.1f s, affected %.1f s, %.1f s after; the broker %.1f s, streams without a leader %v), %.0f s: %s\n",
		res.Broker, res.Row, res.Name, res.Run, res.Seed, res.Load, res.Jobs, res.Lost, d.Total, d.Journaled, d.Stale, d.Answered, d.Nacked, d.Open, d.Bare, d.Unseen, d.Unkept, d.Stored,
		res.Redelivered, res.Again, res.Exits, res.Open, res.Standstill, res.SlowestName, res.Slowest, res.Own, res.AfterBack, res.Away, res.Stuck, res.Took, verdict)
	if t.path == "" {
		return nil
	}
	text, err := json.Marshal(res)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(t.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keeping the result: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// has reports whether the file already has a run that kept its bounds, with the same size and
// slack.
func (t *results) has(o options, r row, run int) bool {
	f, err := os.Open(t.path)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	const longest = 1 << 20
	for lines.Buffer(nil, longest); lines.Scan(); {
		var res result
		if json.Unmarshal(lines.Bytes(), &res) == nil && res.Error == "" && len(res.Broken) == 0 && res.Commit == o.commit && res.Broker == o.broker &&
			res.Row == r.number && res.Run == run && res.Full == o.full && res.Rate == o.rate && res.Slack <= o.slack && res.Hosts == o.hosts {
			return true
		}
	}
	return false
}

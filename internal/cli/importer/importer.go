package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/cli/fieldmap"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// Config says what to import, and how.
type Config struct {
	Name     string        // of the import: part of the keys
	Input    io.Reader     // lines of JSON
	Fields   *fieldmap.Map // nil: the lines are jobs already
	Rate     float64       // most jobs per second; 0: no limit
	Resume   string        // path of the resume file, or ""
	Rejected string        // path of the file of refused lines, or ""
	Patience time.Duration // how long one job is tried when there is no leader or no broker
	Broker   broker.Config
	Waiting  Waiting // how retries and dead jobs are found that were entered before

	OnBatch func(Progress) // called after each batch, if not nil
}

// Waiting returns the records that wait under a jid in the list of an entry stream. A nil record is
// one that cannot be compared.
type Waiting func(ctx context.Context, stream, jid string) (records [][]byte, err error)

// Result is what an import has done.
type Result struct {
	Progress
	Before  Progress  // what earlier runs did, as the resume file has it
	Reasons []Refusal // the first refusals of this run
}

// mostReasons is how many refusals a Result has.
const mostReasons = 10

// run is one run of an import.
type run struct {
	Config
	result Result
	sender sender
	file   *rejected
	limit  *rate.Limiter
	first  bool // the next batch begins with the first line
}

// Run imports jobs. If it returns an error, the result says what was entered before.
func Run(ctx context.Context, c Config) (Result, error) {
	r, lines, err := c.open()
	if err != nil {
		return Result{}, err
	}
	r.sender = sender{cfg: c.Broker, patience: c.Patience, waiting: c.Waiting}
	defer r.sender.close()
	if _, err := r.sender.connect(ctx); err != nil {
		return r.result, err
	}
	if r.file, err = openRejected(c.Rejected, r.result.Rejected); err != nil {
		return r.result, usage.Errorf("--rejected: %w", err)
	}
	most := linesOfBatch
	r.limit = rate.NewLimiter(rate.Inf, 0)
	if c.Rate > 0 {
		r.limit = rate.NewLimiter(rate.Limit(c.Rate), 1)
		most = min(most, max(leastOfBatch, int(c.Rate/4))) // so that the resume file is not old
	}
	in := &reader{lines, &maker{c.Name, c.Fields}, most}
	err = in.each(ctx, func(b *batch) error { return r.enter(ctx, b) })
	return r.result, errors.Join(err, r.file.close())
}

// open reads the resume file, and skips the lines that it names.
func (c Config) open() (*run, *lines, error) {
	done, err := Load(c.Resume, c.Name)
	if err != nil {
		return nil, nil, usage.Errorf("--resume: %w", err)
	}
	r := &run{Config: c, result: Result{Progress: done, Before: done}, first: done.Lines == 0}
	in := newLines(c.Input)
	if done.Bytes > 0 {
		if err := in.skip(&done); err != nil {
			return nil, nil, usage.Fault(err)
		}
	}
	return r, in, nil
}

// enter enters a batch, and then writes the resume file.
func (r *run) enter(ctx context.Context, b *batch) error {
	if r.first && r.Fields != nil && len(b.entries) == 0 && len(b.refused) > 0 {
		return usage.Errorf("none of the first %d lines becomes a job, so nothing was entered: %w", len(b.refused), &b.refused[0])
	}
	r.first = false
	entered, refused, err := send(ctx, &r.sender, r.limit, b.entries)
	r.result.Entered += entered
	refused = append(refused, b.refused...)
	slices.SortFunc(refused, func(a, b Refusal) int { return int(a.Line - b.Line) })
	r.result.Refused += int64(len(refused))
	r.result.Reasons = append(r.result.Reasons, refused[:min(len(refused), mostReasons-len(r.result.Reasons))]...)
	if err != nil {
		return err
	}
	if err := r.file.write(refused); err != nil {
		return fmt.Errorf("write the refused lines: %w", err)
	}
	p := &r.result.Progress
	p.Lines, p.Bytes, p.SHA256, p.Rejected = b.end.Lines, b.end.Bytes, b.end.SHA256, r.file.written()
	if err := p.save(r.Resume); err != nil {
		return err
	}
	if r.OnBatch != nil {
		r.OnBatch(*p)
	}
	return nil
}

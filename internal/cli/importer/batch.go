package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	linesOfBatch = 2000
	leastOfBatch = 100 // lines; with a rate, a batch is what it allows in a quarter of a second
	bytesOfBatch = 8 << 20
	// inFlight is how many jobs are not answered yet. A leader has room for 256 commands.
	inFlight = 200
)

// batch is some lines that follow each other.
type batch struct {
	entries []*entry
	refused []Refusal
	end     Progress // of the input: Lines, Bytes and SHA256
	err     error    // why there is no other batch: io.EOF at the end of the input
}

// reader makes batches of lines.
type reader struct {
	lines *lines
	maker *maker
	most  int // lines of a batch
}

// next returns the next batch.
func (r *reader) next() *batch {
	b := &batch{}
	begin := r.lines.bytes
	for n := 0; n < r.most && r.lines.bytes-begin < bytesOfBatch; n++ {
		read, err := r.lines.next()
		if err != nil {
			b.err = err
			break
		}
		e, err := r.maker.entry(&read)
		if err != nil {
			b.refused = append(b.refused, read.refusal(err))
			continue
		}
		b.entries = append(b.entries, e)
	}
	b.end = Progress{Lines: r.lines.number, Bytes: r.lines.bytes, SHA256: r.lines.checksum()}
	return b
}

// each calls fn for each batch. The next one is read meanwhile.
func (r *reader) each(ctx context.Context, fn func(*batch) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan *batch)
	go func() {
		defer close(batches)
		for {
			b := r.next()
			select {
			case batches <- b:
			case <-ctx.Done():
				return
			}
			if b.err != nil {
				return
			}
		}
	}()
	for {
		select {
		case b := <-batches:
			if err := fn(b); err != nil {
				return err
			}
			if errors.Is(b.err, io.EOF) {
				return nil
			}
			if b.err != nil {
				return b.err
			}
		case <-ctx.Done(): // also while the input is silent
			return ctx.Err()
		}
	}
}

// send enters the jobs of a batch. It returns how many were entered, and those that the leader
// refused. After an error, the others are not known to be entered.
func send(ctx context.Context, s *sender, limit *rate.Limiter, all []*entry) (entered int64, refused []Refusal, err error) {
	var mu sync.Mutex
	g, sending := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for _, e := range all {
		if err := limit.Wait(sending); err != nil {
			break // the group has the error, or ctx
		}
		g.Go(func() error {
			err := s.enter(sending, e)
			var no *refusedError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.As(err, &no):
				refused = append(refused, e.line.refusal(no))
			case err != nil:
				return fmt.Errorf("line %d: %w", e.line.number, err)
			default:
				entered++
			}
			return nil
		})
	}
	err = cmp.Or(g.Wait(), ctx.Err())
	slices.SortFunc(refused, func(a, b Refusal) int { return cmp.Compare(a.Line, b.Line) })
	return entered, refused, err
}

package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// keepLink is how long the connection for questions is kept after one: less than a heartbeat, since nobody reads from it meanwhile.
const keepLink = 5 * time.Second

// nativeQueries keeps the connection on which Last and Fetch ask, one question at a time.
type nativeQueries struct {
	turn chan struct{} // held by whoever asks; it guards the rest
	link *link         // nil when there is none
	idle *time.Timer   // closes link
	over bool
}

func newNativeQueries() *nativeQueries {
	q := &nativeQueries{turn: make(chan struct{}, 1)}
	q.idle = time.AfterFunc(keepLink, func() {
		select {
		case q.turn <- struct{}{}:
			q.drop()
			<-q.turn
		default: // somebody asks, and winds the timer up again
		}
	})
	return q
}

func (q *nativeQueries) close() {
	q.turn <- struct{}{}
	defer func() { <-q.turn }()
	q.over = true
	q.idle.Stop()
	q.drop()
}

func (q *nativeQueries) drop() {
	if q.link != nil {
		q.link.close()
		q.link = nil
	}
}

func (t *nativeTransport) First(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	return t.end(ctx, stream, func() *request { return subscribe(stream, First, 1) }, func(header chunk) int64 { return header.first })
}

func (t *nativeTransport) Last(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	return t.end(ctx, stream, func() *request { return subscribeLast(stream) }, chunk.last)
}

func (t *nativeTransport) LastIsCheap() bool { return true }

// end gives the offset of the chunk that a subscription begins with.
func (t *nativeTransport) end(ctx context.Context, stream string, sub func() *request, of func(chunk) int64) (at int64, ok bool, err error) {
	err = t.query(ctx, func(l *link) error {
		return l.peek(stream, sub(), func(header chunk, _ *content) error {
			at, ok = of(header), true
			return nil
		})
	})
	return at, ok, err
}

func (t *nativeTransport) Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error) {
	var found *wire.Record
	err := t.query(ctx, func(l *link) error {
		return l.peek(stream, subscribe(stream, offset, 1), func(header chunk, c *content) error {
			if offset < header.first || offset > header.last() {
				return nil
			}
			r := chunkReader{chunk: header, stream: stream, from: offset, emit: func(r wire.Record) error {
				found = &r
				return errFound
			}}
			if err := r.read(c); err != nil && !errors.Is(err, errFound) {
				return err
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return wire.Record{}, err
	case found == nil:
		return wire.Record{}, fmt.Errorf("streams: %w: %s, %d", ErrNotFound, stream, offset)
	default:
		return *found, nil
	}
}

var errFound = errors.New("found")

// query asks on the kept connection. If that turns out to be dead, it asks once more on a new one: it may have died long ago.
func (t *nativeTransport) query(ctx context.Context, ask func(*link) error) error {
	return within(ctx, t.cfg.Timeout, func(ctx context.Context) error { return t.queryTwice(ctx, ask) })
}

func (t *nativeTransport) queryTwice(ctx context.Context, ask func(*link) error) error {
	select {
	case t.ask.turn <- struct{}{}:
		defer t.ask.release()
	case <-ctx.Done():
		return ctx.Err()
	}
	for kept := t.ask.link != nil; ; kept = false {
		if t.ask.over {
			return lost("the transport was closed")
		}
		err := t.ask.once(ctx, t, ask)
		if !kept || !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}

func (q *nativeQueries) release() {
	if q.link != nil {
		q.idle.Reset(keepLink)
	}
	<-q.turn
}

func (q *nativeQueries) once(ctx context.Context, t *nativeTransport, ask func(*link) error) (err error) {
	if q.link == nil {
		if q.link, err = dial(ctx, t.cfg, t.to, "asks"); err != nil {
			return err
		}
	}
	l := q.link
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	err = ask(l)
	if !stop() || errors.Is(err, ErrLost) {
		q.drop()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// peek subscribes with credit for one chunk and shows it, if there is one.
//
// Whether there is one is certain, not a matter of waiting: the broker answers in order, and sends what a new subscription may have
// before it looks at the next request. So if the answer to that comes first, there was nothing.
func (l *link) peek(stream string, sub *request, show func(chunk, *content) error) error {
	if _, err := l.ask(sub); err != nil {
		return fmt.Errorf("%w: %s", err, stream)
	}
	if err := l.chunkBefore(newRequest(cmdMetadata).u32(1).str(stream), show); err != nil {
		return err
	}
	return l.chunkBefore(newRequest(cmdUnsubscribe).u8(subscriptionID), nil)
}

// chunkBefore makes a request and shows the chunk that comes before the response.
func (l *link) chunkBefore(r *request, show func(chunk, *content) error) error {
	id, err := l.start(r)
	if err != nil {
		return err
	}
	for {
		f, err := l.read()
		if err != nil {
			return err
		}
		if f.command == cmdDeliver && show != nil {
			err = l.show(f, show)
		} else if _, ok := f.answers(r, id); ok {
			return errors.Join(l.check(f, r), l.skip(f))
		}
		if err = errors.Join(err, l.skip(f)); err != nil {
			return err
		}
	}
}

func (l *link) show(f frame, show func(chunk, *content) error) error {
	f.content.u8() // subscription
	header, err := readChunkHeader(f.content)
	if err != nil {
		return err
	}
	return show(header, f.content)
}

// exists asks whether the stream is there.
func (l *link) exists(stream string) error {
	answer, err := l.ask(newRequest(cmdMetadata).u32(1).str(stream))
	if err != nil {
		return err
	}
	for nodes := answer.u32(); nodes > 0 && answer.err == nil; nodes-- {
		answer.u16()
		answer.str()
		answer.u32()
	}
	answer.u32() // one stream
	answer.str()
	code := answer.u16()
	answer.u16() // its leader, and its replicas
	for replicas := answer.u32(); replicas > 0 && answer.err == nil; replicas-- {
		answer.u16()
	}
	if answer.err != nil {
		return lost("reading: %w", answer.err)
	}
	if code == codeNoStream {
		return fmt.Errorf("streams: %w: %s", ErrNoStream, stream)
	}
	return nil
}

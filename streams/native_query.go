package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

func (t *nativeTransport) First(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	return t.end(ctx, stream, func() *request { return subscribe(stream, First, 1) }, func(header chunk) int64 { return header.first })
}

func (t *nativeTransport) Last(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	return t.end(ctx, stream, func() *request { return subscribeLast(stream) }, chunk.last)
}

func (t *nativeTransport) LastIsCheap() bool { return true }

// end subscribes at the stream's leader. It returns the offset that the function of reads from the
// first chunk. A replica may lag, and after an election it does not know at first which records are
// committed.
func (t *nativeTransport) end(ctx context.Context, stream string, sub func() *request, of func(chunk) int64) (at int64, ok bool, err error) {
	err = t.askLeader(ctx, stream, func(l *link) error {
		return l.peek(stream, sub(), func(header chunk, _ *content) error {
			at, ok = of(header), true
			return nil
		})
	})
	return at, ok, err
}

func (t *nativeTransport) Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error) {
	var found *wire.Record
	err := t.askLeader(ctx, stream, func(l *link) error {
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

func (t *nativeTransport) Next(ctx context.Context, stream string, offset int64) (next int64, err error) {
	found := false
	err = t.askLeader(ctx, stream, func(l *link) error {
		return l.peek(stream, subscribe(stream, offset, 1), func(header chunk, _ *content) error {
			next, found = max(header.first, offset), offset <= header.last()
			return nil
		})
	})
	if err == nil && !found {
		err = fmt.Errorf("streams: %w: %s, from %d on", ErrNotFound, stream, offset)
	}
	return next, err
}

var errFound = errors.New("found")

// query runs ask on a connection to a node that has the role for the stream.
func (t *nativeTransport) query(ctx context.Context, stream string, r role, ask func(*link) error) error {
	return within(ctx, t.cfg.Timeout, func(ctx context.Context) error {
		end, err := t.links.begin(ctx)
		if err != nil {
			return err
		}
		defer end()
		l, err := t.kept(ctx, stream, r)
		if err != nil {
			return err
		}
		if l != nil {
			if err := t.askOn(ctx, l, ask); !errors.Is(err, ErrLost) || ctx.Err() != nil {
				return err
			}
			// The connection may have been lost long ago. Try a new one.
		}
		if t.links.isClosed() {
			return lost("the transport was closed")
		}
		if l, err = t.nodes.dial(ctx, stream, r, "asks"); err != nil {
			return err
		}
		return t.askOn(ctx, l, ask)
	})
}

// askLeader runs ask on a connection to the stream's leader.
func (t *nativeTransport) askLeader(ctx context.Context, stream string, ask func(*link) error) error {
	return t.query(ctx, stream, leader, ask)
}

// keptEach limits a metadata request on an idle connection. A node that knows where a stream is
// answers immediately.
const keptEach = time.Second

// kept returns an idle connection to a node that has the role, or nil if there is none. It asks on
// any idle connection which nodes have the role.
func (t *nativeTransport) kept(ctx context.Context, stream string, r role) (*link, error) {
	l := t.links.take(func(l *link) bool { return r == anyReplica && l.serves[stream] })
	if l != nil {
		return l, nil
	}
	if l = t.links.take(func(*link) bool { return true }); l == nil {
		return nil, nil
	}
	var at located
	err := within(ctx, keptEach, func(ctx context.Context) error {
		return t.askOn(ctx, l, func(l *link) (err error) {
			at, err = l.locate(stream)
			return err
		})
	})
	if errors.Is(err, ErrLost) {
		// The connection may be lost, or its node is cut off from the cluster and waits.
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if l = t.links.take(func(l *link) bool { return at.suits(l.node, r) }); l != nil {
		l.serves[stream] = true
	}
	return l, nil
}

// askOn runs ask on a connection, and keeps the connection unless it was lost.
func (t *nativeTransport) askOn(ctx context.Context, l *link, ask func(*link) error) error {
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	err := ask(l)
	if stop() && !errors.Is(err, ErrLost) {
		t.links.put(l)
	} else {
		t.nodes.drop(ctx, l)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// peek subscribes with credit for one chunk and passes that chunk to show, if there is one.
//
// peek need not wait to see that there is none. The broker answers in order, and sends the chunk of
// a new subscription before it handles the next request. If the response to the next request comes
// first, there is no chunk.
func (l *link) peek(stream string, sub *request, show func(chunk, *content) error) error {
	if _, err := l.ask(sub); err != nil {
		return fmt.Errorf("%w: %s", err, stream)
	}
	if err := l.chunkBefore(newRequest(cmdMetadata).u32(1).str(stream), show); err != nil {
		return err
	}
	return l.chunkBefore(newRequest(cmdUnsubscribe).u8(subscriptionID), nil)
}

// chunkBefore sends a request. It calls show with the chunk that comes before the response.
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

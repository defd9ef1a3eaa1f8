package streams

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace-jobs/millrace/wire"
)

// chunksAhead is how many chunks the broker may have under way to us at a time. Each is asked for when one has been read, and reading
// stops while deliver is behind, so this bounds what lies in the sockets, not in memory.
const chunksAhead = 8

// nativeTransport speaks RabbitMQ's stream protocol.
type nativeTransport struct {
	cfg  Config
	to   address
	done chan struct{} // closed by Close
	once sync.Once
	ask  *nativeQueries
}

func openNative(ctx context.Context, cfg Config, to address) (*nativeTransport, error) {
	l, err := dial(ctx, cfg, to, "asks")
	if err != nil {
		return nil, err
	}
	l.close()
	return &nativeTransport{cfg: cfg, to: to, done: make(chan struct{}), ask: newNativeQueries()}, nil
}

func (t *nativeTransport) Name() string { return "native" }

func (t *nativeTransport) Close() error {
	t.once.Do(func() { close(t.done) })
	t.ask.close()
	return nil
}

func (t *nativeTransport) Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	return readAhead(ctx, t.done, t.cfg.Ahead, deliver, func(ctx context.Context, out *ahead) error {
		return t.pump(ctx, stream, from, out)
	})
}

// pump reads the stream from a connection of its own until that fails or ctx ends.
func (t *nativeTransport) pump(ctx context.Context, stream string, from int64, out *ahead) error {
	l, err := dial(ctx, t.cfg, t.to, "reads "+stream)
	if err != nil {
		return err
	}
	var beating sync.WaitGroup
	defer beating.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, l.close)
	defer func() {
		if stop() {
			l.close()
		}
	}()
	beating.Go(func() { l.beat(ctx) })

	if _, err := l.ask(subscribe(stream, from, chunksAhead)); err != nil {
		return err
	}
	t.cfg.Log.Debug("streams: reading", "stream", stream, "offset", from)
	return l.follow(ctx, stream, from, out)
}

// follow reads chunks and asks for as many more, for ever.
func (l *link) follow(ctx context.Context, stream string, from int64, out *ahead) error {
	group := make([]wire.Record, 0, 256)
	var size int64
	flush := func() error {
		out.put(group...)
		group, size = group[:0], 0
		return out.waitRoom(ctx)
	}
	emit := func(r wire.Record) error {
		group, size = append(group, r), size+weight(&r)
		if len(group) < cap(group) && size < 1<<20 {
			return nil
		}
		return flush()
	}
	for {
		f, err := l.read()
		if err != nil {
			return err
		}
		switch f.command {
		case cmdDeliver:
			if err := l.chunk(f, stream, from, emit); err != nil {
				return err
			}
			if err := flush(); err != nil {
				return err
			}
			if err := l.send(newRequest(cmdCredit).u8(subscription).u16(1)); err != nil {
				return err
			}
		case cmdMetadataUpdate:
			return l.gone(f, stream)
		}
		if err := l.skip(f); err != nil {
			return err
		}
	}
}

// chunk reads the records of a delivery. Those below from are dropped: the broker sends whole chunks.
func (l *link) chunk(f frame, stream string, from int64, emit func(wire.Record) error) error {
	f.content.u8() // subscription
	header, err := readChunkHeader(f.content)
	if err != nil {
		return err
	}
	r := chunkReader{chunk: header, stream: stream, from: from, emit: emit}
	return r.read(f.content)
}

// gone says what happened to a stream that is no longer available: it was deleted, or its process or node went away.
func (l *link) gone(f frame, stream string) error {
	if err := l.skip(f); err != nil {
		return err
	}
	switch err := l.exists(stream); {
	case errors.Is(err, ErrNoStream):
		return cancelled(stream)
	case err != nil:
		return err
	default:
		return lost("stream %s is not available on this node", stream)
	}
}

// subscription is the only one a connection has.
const subscription = 0

const (
	offsetFirst = 1
	offsetLast  = 2
	offsetExact = 4
)

func subscribe(stream string, from int64, credit uint16) *request {
	r := newRequest(cmdSubscribe).u8(subscription).str(stream)
	if from < 0 {
		return r.u16(offsetFirst).u16(credit)
	}
	return r.u16(offsetExact).u64(uint64(from)).u16(credit)
}

func subscribeLast(stream string) *request {
	return newRequest(cmdSubscribe).u8(subscription).str(stream).u16(offsetLast).u16(1)
}

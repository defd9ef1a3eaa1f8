package streams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// mostChunks is how many small chunks may be requested at a time.
const mostChunks = 8

// nativeTransport speaks RabbitMQ's stream protocol.
type nativeTransport struct {
	cfg   Config
	nodes *nodes
	done  chan struct{} // closed by Close
	once  sync.Once

	links *links // for queries
}

func newNative(cfg Config) (*nativeTransport, error) {
	nodes, err := newNodes(cfg)
	if err != nil {
		return nil, err
	}
	return &nativeTransport{cfg: cfg, nodes: nodes, done: make(chan struct{}), links: newLinks()}, nil
}

func (t *nativeTransport) Name() string { return "native" }

func (t *nativeTransport) Close() error {
	t.once.Do(func() { close(t.done) })
	t.links.close()
	return nil
}

func (t *nativeTransport) Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	return readAhead(ctx, t.done, t.cfg.Ahead, deliver, func(ctx context.Context, out *ahead) error {
		return t.pump(ctx, stream, from, out)
	})
}

// pump reads the stream over its own connection until reading fails or ctx ends.
func (t *nativeTransport) pump(ctx context.Context, stream string, from int64, out *ahead) error {
	l, err := t.nodes.dial(ctx, stream, anyReplica, "reads "+stream)
	if err != nil {
		return err
	}
	err = t.follow(ctx, l, stream, from, out)
	if errors.Is(err, ErrLost) && ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrMoved) {
		t.nodes.lost(l)
	}
	return err
}

func (t *nativeTransport) follow(ctx context.Context, l *link, stream string, from int64, out *ahead) error {
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
	beating.Go(func() { l.every(ctx, max(l.heartbeat/2, time.Second/2), heartbeat) })

	if _, err := l.ask(subscribe(stream, from, 1)); err != nil {
		return fmt.Errorf("%w: %s", err, stream)
	}
	beating.Go(func() { l.every(ctx, t.cfg.Quiet, wake) })
	t.cfg.Log.Debug("streams: reading", "stream", stream, "offset", from)
	f := follower{link: l, stream: stream, from: from, out: out, asked: 1}
	return f.follow(ctx)
}

// follower reads the chunks of a subscription.
type follower struct {
	*link
	stream string
	from   int64
	out    *ahead
	asked  int   // chunks that were requested and have not come yet
	size   int64 // of the last chunk

	group []wire.Record // read, and not put into out yet
	bytes int64
}

func (l *follower) follow(ctx context.Context) error {
	for {
		f, err := l.read()
		if err != nil {
			return err
		}
		switch f.command {
		case cmdDeliver:
			err = l.chunk(ctx, f)
		case cmdMetadataUpdate:
			err = l.gone(ctx, f, l.stream)
		}
		if err != nil {
			return err
		}
		if err := l.skip(f); err != nil {
			return err
		}
	}
}

// chunk reads the records of a delivery. It drops those below from: the broker sends whole chunks.
func (l *follower) chunk(ctx context.Context, f frame) error {
	f.content.u8() // subscription
	header, err := readChunkHeader(f.content)
	if err != nil {
		return err
	}
	r := chunkReader{chunk: header, stream: l.stream, from: l.from, emit: func(r wire.Record) error {
		if l.add(r) {
			return l.flush(ctx)
		}
		return nil
	}}
	if err := r.read(f.content); err != nil {
		return err
	}
	l.asked, l.size = l.asked-1, int64(header.size)
	if err := l.flush(ctx); err != nil {
		return err
	}
	return l.askForMore()
}

func (l *follower) add(r wire.Record) (full bool) {
	l.group, l.bytes = append(l.group, r), l.bytes+weight(&r)
	return len(l.group) >= 256 || l.bytes >= 1<<20
}

func (l *follower) flush(ctx context.Context) error {
	l.out.put(l.group...)
	clear(l.group)
	l.group, l.bytes = l.group[:0], 0
	return l.out.waitRoom(ctx)
}

// askForMore requests as many chunks as there is room for. At least one chunk always stays
// requested.
//
// It must not request more than it can read without a pause. While the broker waits for us to read,
// it does not see our heartbeats, and closes the connection.
func (l *follower) askForMore() error {
	room := l.out.limit - l.out.size()
	more := 0
	for l.asked+more < mostChunks && (int64(l.asked+more+1)*l.size <= room || l.asked+more == 0) {
		more++
	}
	if more == 0 {
		return nil
	}
	l.asked += more
	return l.send(newRequest(cmdCredit).u8(subscriptionID).u16(uint16(more)))
}

// wake requests no more chunks, but makes the broker look for new ones. The broker may have
// forgotten to do so (see subscription.listen).
func wake() *request { return newRequest(cmdCredit).u8(subscriptionID).u16(0) }

func heartbeat() *request { return newRequest(cmdHeartbeat) }

// gone returns the error for a stream that is no longer available: the stream was deleted, or its
// process or node stopped. The broker may send its notice a moment before it deletes the stream, so
// gone asks several times.
func (l *link) gone(ctx context.Context, f frame, stream string) error {
	if err := l.skip(f); err != nil {
		return err
	}
	for range 3 {
		switch _, err := l.locate(stream); {
		case errors.Is(err, ErrNoStream):
			return cancelled(stream)
		case err != nil:
			return err
		}
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return lost("stream %s is not available on this node", stream)
}

// subscriptionID is the id of the only subscription on a connection.
const subscriptionID = 0

const (
	offsetFirst = 1
	offsetLast  = 2
	offsetExact = 4
)

func subscribe(stream string, from int64, credit uint16) *request {
	r := newRequest(cmdSubscribe).u8(subscriptionID).str(stream)
	if from < 0 {
		return r.u16(offsetFirst).u16(credit)
	}
	return r.u16(offsetExact).u64(uint64(from)).u16(credit)
}

func subscribeLast(stream string) *request {
	return newRequest(cmdSubscribe).u8(subscriptionID).str(stream).u16(offsetLast).u16(1)
}

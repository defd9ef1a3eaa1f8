package streams

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/wire"
)

// What a caller may branch on. Every error of this package that is none of these is of the caller's own making (a bad URL, a refused
// permission) and will not go away by trying again.
var (
	ErrLost      = errors.New("connection lost")                 // try again, from the last record read
	ErrNoStream  = errors.New("no such stream")                  // nothing of that name, or it is no stream
	ErrCancelled = errors.New("stream deleted under its reader") // the broker cancelled the subscription
	ErrNotFound  = errors.New("no record at that offset")        // never was, or retention took it
	ErrRefused   = errors.New("refused")                         // no permission
	ErrMoved     = errors.New("read from another node")          // as the cause of a reader's end: its node is not to be tried next
)

// First as an offset to read from: the first record that the stream still has.
const First = int64(-1)

// Most records, and most bytes of their bodies, that one batch holds. A single record may be larger.
const (
	maxBatch      = 1000
	maxBatchBytes = 4 << 20
)

// Transport reads streams. It is safe for concurrent use; every Read has a connection of its own.
type Transport interface {
	// Name is "native" or "amqp".
	Name() string

	// Read delivers the stream's records from offset from on, inclusive, in order, in batches: as many as are at hand, never waiting to
	// fill one. From First it begins at the first record the stream still has. Offsets may have holes: compare them, never count.
	//
	// It blocks until ctx ends (nil), deliver fails (its error, as it is), the stream is not there (ErrNoStream), may not be read
	// (ErrRefused), is deleted (ErrCancelled), or the connection is lost (ErrLost). It never connects again by itself. What was read
	// before the end is delivered first, except when ctx ends. The records belong to deliver, which is called from the goroutine that
	// called Read. Those with a Fault have no Body, and stand for the offsets up to Through.
	Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error

	// First gives the offset of the oldest record that the stream still has; ok is false when the stream is empty.
	First(ctx context.Context, stream string) (offset int64, ok bool, err error)

	// Last gives the offset of the newest record; ok is false when the stream is empty.
	Last(ctx context.Context, stream string) (offset int64, ok bool, err error)

	// LastIsCheap tells whether Last may be asked time and again: it costs no connection, and little.
	LastIsCheap() bool

	// Fetch gives the one record at offset, or ErrNotFound. Over AMQP 0-9-1 that is a matter of waiting, where nothing comes: compare with
	// First and Last before anything is given up for it.
	Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error)

	// Close ends every Read with ErrLost and lets go of the broker.
	Close() error
}

// Config says where the broker is. The zero value of every field but AMQPURL is its default.
type Config struct {
	AMQPURL   string       // where AMQP 0-9-1 is spoken; required. Several hosts stand with commas between them, here and below
	StreamURL string       // where the stream protocol is spoken, e.g. rabbitmq-stream://guest:guest@127.0.0.1:5552/vhost; "" = nowhere
	Hosts     *hosts.Order // of the process's AMQP connections: streams are read from the node of the last one, if possible; nil = any
	Name      string       // the connections' name in the broker's lists; "" = millrace
	Log       *slog.Logger
	TLS       *tls.Config // for amqps and rabbitmq-stream+tls; nil = the system's

	Ahead     int64         // bytes read ahead of deliver, by each Read, give or take a few records; 0 = 16 MiB
	Timeout   time.Duration // for connecting, and for each question to the broker; 0 = 10 s
	Heartbeat time.Duration // a connection that is silent for one and a half of these is lost; 0 = 5 s
	Quiet     time.Duration // after so long without a record a reader makes sure that the broker has not forgotten it; 0 = 20 s
	Patience  time.Duration // how long Open waits for the native protocol before it falls back; 0 = 2 s
	FallBack  time.Duration // how long only AMQP 0-9-1 answers before readers of the native protocol use that; 0 = 10 s
	Again     time.Duration // after so long native is tried again; 0 = 1 min

	// Trust says whether a stream listener that answers again may be read from: it may be another broker's now. nil = any may
	Trust func(ctx context.Context, native, amqp Transport) error
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "millrace"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Ahead = cmp.Or(c.Ahead, 16<<20)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.Quiet = cmp.Or(c.Quiet, 20*time.Second)
	c.Patience = cmp.Or(c.Patience, 2*time.Second)
	c.FallBack = cmp.Or(c.FallBack, 10*time.Second)
	c.Again = cmp.Or(c.Again, time.Minute)
	return c
}

// Open connects, so that a wrong URL shows immediately, and chooses the transport: native where StreamURL answers, AMQP 0-9-1 elsewhere.
func Open(ctx context.Context, cfg Config) (Transport, error) {
	cfg = cfg.withDefaults()
	if cfg.AMQPURL == "" {
		return nil, errors.New("streams: no AMQP URL")
	}
	if cfg.StreamURL == "" {
		return openAMQP(ctx, cfg)
	}
	native, err := newNative(cfg)
	if err != nil {
		cfg.Log.Warn("streams: "+overAMQP, "url", broker.MaskURL(cfg.StreamURL), "error", err)
		return openAMQP(ctx, cfg)
	}
	return openChoice(ctx, cfg, native)
}

func lost(format string, args ...any) error {
	return fmt.Errorf("streams: %w: %w", ErrLost, fmt.Errorf(format, args...))
}

package streams

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/wire"
)

// Errors on which a caller may branch. Any other error of this package has its cause in the
// configuration, such as a bad URL, and trying again does not help.
var (
	// ErrLost is returned when the connection is lost. Read again, from the last record.
	ErrLost = errors.New("connection lost")
	// ErrNoStream is returned when no queue has this name, or it is not a stream.
	ErrNoStream = errors.New("no such stream")
	// ErrCancelled is returned when the broker cancels the subscription.
	ErrCancelled = errors.New("stream deleted under its reader")
	// ErrNotFound is returned when the record never existed, or retention has deleted it.
	ErrNotFound = errors.New("no record at that offset")
	// ErrRefused is returned when the credentials are wrong, or a permission is missing.
	ErrRefused = errors.New("refused")
	// ErrMoved is a cause to cancel a Read with: the next Read tries another node first.
	ErrMoved = errors.New("read from another node")
)

// First is an offset to read from: the first record that the stream still has.
const First = int64(-1)

// maxBatch and maxBatchBytes limit the records and the bytes of bodies in one batch. A single
// record may be larger.
const (
	maxBatch      = 1000
	maxBatchBytes = 4 << 20
)

// Transport reads streams. It is safe for concurrent use. Every Read has its own connection.
type Transport interface {
	// Name returns "native" or "amqp".
	Name() string

	// Read delivers the records of the stream in order, from offset from on, inclusive. From First
	// it begins at the first record that the stream still has. A batch holds the records that are
	// available: Read never waits to fill one. Offsets may have holes, so callers must compare them
	// and not count.
	//
	// Read blocks until one of these happens:
	//
	//   - ctx ends: it returns nil.
	//   - deliver fails: it returns the same error.
	//   - The stream does not exist (ErrNoStream), may not be read (ErrRefused), or is deleted
	//     (ErrCancelled).
	//   - The connection is lost (ErrLost). Read never reconnects by itself.
	//
	// Read delivers what it has read before it returns, except when ctx ends. It calls deliver from
	// the goroutine that called Read, and deliver owns the records. A record with a Fault has no
	// Body, and stands for all offsets up to Through.
	Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error

	// First returns the offset of the oldest record that the stream still has. ok is false if the
	// stream is empty.
	First(ctx context.Context, stream string) (offset int64, ok bool, err error)

	// Last returns the offset of the newest record. ok is false if the stream is empty.
	Last(ctx context.Context, stream string) (offset int64, ok bool, err error)

	// LastIsCheap reports whether Last may be called repeatedly, because it loses no connection and
	// costs little.
	LastIsCheap() bool

	// Fetch returns the record at offset, or ErrNotFound. Over AMQP 0-9-1, ErrNotFound only means
	// that nothing came in time. Compare the offset with First and Last before you act on it.
	Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error)

	// Next returns the offset of the first record at offset or behind it, or ErrNotFound.
	Next(ctx context.Context, stream string, offset int64) (int64, error)

	// Close ends every Read with ErrLost, and closes the connections.
	Close() error
}

// Config says where the broker is. Every field but AMQPURL has a default for its zero value.
type Config struct {
	// AMQPURL is the URL for AMQP 0-9-1. It is required. Commas separate several hosts, here and in
	// StreamURL.
	AMQPURL string
	// StreamURL is the URL for the stream protocol, such as
	// rabbitmq-stream://guest:guest@127.0.0.1:5552/vhost. Empty means that there is none.
	StreamURL string
	// Hosts is the order of the process's AMQP connections. Streams are read from the node of the
	// last one, if possible. nil means from any node.
	Hosts *hosts.Order
	// Name is the name of the connections in the broker's lists. Defaults to millrace.
	Name string
	Log  *slog.Logger
	// TLS is for amqps and rabbitmq-stream+tls. nil means the settings of the system.
	TLS *tls.Config

	// Ahead is how many bytes each Read reads ahead of deliver, give or take a few records.
	// Defaults to 16 MiB.
	Ahead int64
	// Timeout limits connecting, and each query. Defaults to 10 s.
	Timeout time.Duration
	// Heartbeat is the heartbeat interval. A connection is lost after one and a half of them
	// without a byte. Defaults to 5 s.
	Heartbeat time.Duration
	// Quiet is the time without a record after which a reader makes sure that the broker has not
	// forgotten it. Defaults to 20 s.
	Quiet time.Duration
	// Patience is how long Open waits for the native protocol. Defaults to 2 s.
	Patience time.Duration
	// FallBack is how long only AMQP 0-9-1 must answer before readers of the native protocol use
	// it. Defaults to 10 s.
	FallBack time.Duration
	// Again is the interval at which native is tried again. Defaults to 1 min.
	Again time.Duration

	// SlowAcks leaves it to the kernel when TCP segments are acknowledged. Then records come as
	// late as to other clients.
	SlowAcks bool

	// Trust returns nil if a stream listener that answers again may be used. It may belong to
	// another broker now. If Trust is nil, any listener may be used.
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

func lost(format string, args ...any) error {
	return fmt.Errorf("streams: %w: %w", ErrLost, fmt.Errorf(format, args...))
}

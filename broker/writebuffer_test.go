package broker

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recorder records what is written to it, one entry per write.
type recorder struct {
	net.Conn
	mu     sync.Mutex
	writes []string
	wrote  chan struct{}
	err    error
	closed bool
}

func newRecorder() *recorder { return &recorder{wrote: make(chan struct{}, 100)} }

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	r.writes = append(r.writes, string(p))
	r.wrote <- struct{}{}
	return len(p), nil
}

func (r *recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.writes)
}

func write(t *testing.T, o *writeBuffer, text string) {
	t.Helper()
	n, err := o.write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
}

func TestWriteBufferCollectsBatch(t *testing.T) {
	r := newRecorder()
	o := newWriteBuffer(r, time.Hour)
	write(t, o, "a")
	require.Equal(t, []string{"a"}, r.seen(), "outside a batch, a write is not buffered")
	o.batch(func() {
		write(t, o, "b")
		o.batch(func() { write(t, o, "c") })
		write(t, o, "d")
	})
	require.Equal(t, []string{"a", "bcd"}, r.seen(), "the outermost batch sends everything")
	write(t, o, "e")
	require.Equal(t, []string{"a", "bcd", "e"}, r.seen())
}

// A caller of batch may wait for an answer to what it has written.
func TestWriteBufferSendsWhileWriterWaits(t *testing.T) {
	r := newRecorder()
	o := newWriteBuffer(r, time.Millisecond)
	o.batch(func() {
		for _, text := range []string{"a", "b"} {
			write(t, o, text)
			<-r.wrote
		}
	})
	require.Equal(t, []string{"a", "b"}, r.seen())
}

func TestWriteBufferIsBounded(t *testing.T) {
	r := newRecorder()
	o := newWriteBuffer(r, time.Hour)
	large := string(bytes.Repeat([]byte("x"), 4*gatherMost))
	o.batch(func() {
		write(t, o, large)
		require.Equal(t, []string{large}, r.seen(), "a full buffer is sent before the batch ends")
		require.Zero(t, cap(o.waiting), "the memory of a large message is freed")
	})
}

// A buffered write that fails makes the next write fail, and closes the connection, so that its
// reader learns of it.
func TestFailedWriteClosesConnection(t *testing.T) {
	r := newRecorder()
	o := newWriteBuffer(r, time.Hour)
	r.err = errors.New("gone")
	o.batch(func() { write(t, o, "a") })
	require.True(t, r.closed)
	_, err := o.write([]byte("b"))
	require.Equal(t, r.err, err)
	o.batch(func() {
		_, err = o.write([]byte("c"))
		require.Equal(t, r.err, err)
	})
}

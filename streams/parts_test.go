package streams

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/internal/hosts"
	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
	"github.com/millrace-jobs/millrace/wire"
)

func TestParseStreamURL(t *testing.T) {
	for raw, want := range map[string]address{
		"rabbitmq-stream://h":                      {hostPort: "h:5552", host: "h", user: "guest", password: "guest", vhost: "/"},
		"rabbitmq-stream://h/":                     {hostPort: "h:5552", host: "h", user: "guest", password: "guest", vhost: "/"},
		"rabbitmq-stream://h:1/%2F":                {hostPort: "h:1", host: "h", user: "guest", password: "guest", vhost: "/"},
		"rabbitmq-stream://h:1/a%2Fb+c":            {hostPort: "h:1", host: "h", user: "guest", password: "guest", vhost: "a/b+c"},
		"rabbitmq-stream+tls://u:p%40%2F@[::1]/v":  {hostPort: "[::1]:5551", host: "::1", tls: true, user: "u", password: "p@/", vhost: "v"},
		"rabbitmq-stream+tls://u:p@127.0.0.1:99/v": {hostPort: "127.0.0.1:99", host: "127.0.0.1", tls: true, user: "u", password: "p", vhost: "v"},
	} {
		got, err := parseStreamURL(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
	for _, raw := range []string{"", "amqp://h", "rabbitmq-stream:///v", "rabbitmq-stream://u:secret@h:x/v", "rabbitmq-stream://h/%zz"} {
		_, err := parseStreamURL(raw)
		require.Error(t, err, raw)
		require.NotContains(t, err.Error(), "secret")
	}
	first, all, err := parseStreamURLs("rabbitmq-stream://u:p@a,b:1/v,rabbitmq-stream://u:p@c/v")
	require.NoError(t, err)
	require.Equal(t, address{hostPort: "a:5552", host: "a", user: "u", password: "p", vhost: "v"}, first)
	require.Equal(t, []string{"a:5552", "b:1", "c:5552"}, all)
	require.Equal(t, address{hostPort: "b:1", host: "b", dial: "10.0.0.2:1", user: "u", password: "p", vhost: "v"},
		first.at(hosts.Target{Host: "b:1", Address: "10.0.0.2:1"}))
	for _, raw := range []string{"", "amqp://a,b", "rabbitmq-stream://u:secret@a,b:x/v", "rabbitmq-stream://u:secret@a,,b/v"} {
		_, _, err := parseStreamURLs(raw)
		require.ErrorContains(t, err, "stream URL: ", raw)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestPace(t *testing.T) {
	for name, c := range map[string]struct{ size, want int }{
		"small":   {100, mostPrefetch},
		"medium":  {64 << 10, 1023},
		"fitting": {1 << 20, firstPrefetch},
		"large":   {15 << 20, leastPrefetch},
		"huge":    {128 << 20, leastPrefetch},
	} {
		t.Run(name, func(t *testing.T) {
			p, changes := newPace(64<<20), 0
			for range 10_000 {
				if p.observe(c.size) {
					changes++
				}
			}
			require.Equal(t, c.want, p.prefetch)
			require.LessOrEqual(t, changes, 1)
		})
	}
	p := newPace(64 << 20)
	for range firstPrefetch {
		p.observe(100)
	}
	require.Equal(t, mostPrefetch, p.prefetch)
	require.True(t, p.observe(15<<20), "the first large record is enough of a warning")
}

func TestSteps(t *testing.T) {
	var all steps
	s := all.of("a")
	require.Same(t, s, all.of("a"))
	require.NotSame(t, s, all.of("b"))

	require.False(t, s.died(First), "the first death may have had any reason")
	require.True(t, s.near(0))
	require.False(t, s.died(7), "at another offset: begin again")
	require.False(t, s.behind(8))
	require.True(t, s.died(7))
	require.True(t, s.behind(8))
	require.True(t, s.died(8), "one further")
	require.Equal(t, []int64{7, 8}, []int64{s.first(), s.last()})
	s.read(6)
	s.read(9)
	require.True(t, s.died(7), "known by now")
	require.Equal(t, int64(8), s.last())
	require.True(t, s.near(9))
	require.False(t, s.near(10))
	require.False(t, s.near(8-3*nearness))
	s.read(8)
	require.False(t, s.behind(9), "it could be read")
	require.False(t, s.died(7))
}

// Records leave ahead once, in order, in batches within the limits. No goroutine waits without
// need.
func TestAhead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{0, 10, 1000, maxBatchBytes / 3, maxBatchBytes, 2 * maxBatchBytes}), 0, 50).Draw(rt, "sizes")
		few := rapid.IntRange(0, 3000).Draw(rt, "small ones")
		synctest.Test(t, func(t *testing.T) {
			const limit = 3 * maxBatchBytes
			a, total := newAhead(limit), len(sizes)+few
			body := make([]byte, 2*maxBatchBytes)
			go func() {
				for i := range total {
					r := wire.Record{Offset: int64(i)}
					if i < len(sizes) {
						r.Body = body[:sizes[i]:sizes[i]]
					}
					if a.waitRoom(t.Context()) != nil {
						return
					}
					a.put(r)
				}
				a.end(errEnough)
			}()
			next := int64(0)
			for {
				batch, err := a.take(t.Context())
				if err != nil {
					require.Equal(t, errEnough, err)
					break
				}
				require.LessOrEqual(t, len(batch), maxBatch)
				size := 0
				for _, r := range batch {
					require.Equal(t, next, r.Offset)
					next++
					size += len(r.Body)
				}
				require.True(t, size <= maxBatchBytes || len(batch) == 1)
				synctest.Wait() // let it read ahead as far as it may
				require.LessOrEqual(t, a.bytes, int64(limit+len(body)+recordOverhead))
				a.delivered(batch)
			}
			require.EqualValues(t, total, next)
			require.Zero(t, a.bytes)
		})
	})
}

func TestAheadEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := newAhead(1)
		a.put(wire.Record{})
		waited, took := make(chan error), make(chan error)
		go func() { waited <- a.waitRoom(ctx) }()
		batch, err := a.take(ctx)
		require.NoError(t, err)
		require.Len(t, batch, 1)
		go func() {
			_, err := a.take(ctx)
			took <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-waited, context.Canceled)
		require.ErrorIs(t, <-took, context.Canceled)
		a.end(errEnough)
		a.end(errors.New("too late"))
		require.NoError(t, a.waitRoom(t.Context()), "what has ended has room")
		_, err = a.take(t.Context())
		require.Equal(t, errEnough, err)
	})
}

func TestUnpackRefuses(t *testing.T) {
	const limit = 1 << 20
	for compression := range byte(8) {
		plain := []byte(strings.Repeat("x", 1000))
		packed := compress(compression, plain)
		out, err := unpack(compression, packed, 1000, limit)
		if compression > 4 {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, plain, out)
		if compression > 0 {
			_, err = unpack(compression, compress(compression, make([]byte, limit+1)), 1000, limit)
			require.ErrorContains(t, err, "over")
			_, err = unpack(compression, packed[:len(packed)/2], 1000, limit)
			require.Error(t, err)
		}
		_, err = unpack(compression, packed, limit+1, limit)
		require.Error(t, err)
	}
}

// Other clients pack with the LZ4 frame format of
// https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md. This frame is from RabbitMQ's Go
// client.
func TestUnpacksLZ4OfOtherClients(t *testing.T) {
	packed, err := hex.DecodeString("04224d186470b91e0000009f6d696c6c7261636520090021013600013f00a0206d696c6c726163652000000000c1c1ff8d")
	require.NoError(t, err)
	out, err := unpack(3, packed, 81, 1000)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("millrace ", 9), string(out))
	packed[20] ^= 1
	_, err = unpack(3, packed, 81, 1000)
	require.Error(t, err, "its checksum is looked at")
}

func FuzzUnpack(f *testing.F) {
	for compression := range byte(5) {
		f.Add(compression, compress(compression, []byte("some bytes to pack, to pack, to pack")))
	}
	f.Fuzz(func(t *testing.T, compression byte, packed []byte) {
		out, err := unpack(compression&7, packed, 100, 1<<20)
		if err == nil && len(out) > max(1<<20, len(packed)) {
			t.Fatal("too much")
		}
	})
}

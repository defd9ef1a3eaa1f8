package streams

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// expected has one element for each offset: the body that must be read, or empty for a Fault.
type expected []string

// requireRead checks that there is a record for each offset from from on, and that good records
// have the right bodies. If holes is true, an offset may also be missing, because some brokers
// leave records out.
func (want expected) requireRead(t *testing.T, from int64, records []wire.Record, holes bool) {
	t.Helper()
	next := from
	for _, r := range records {
		for holes && next < r.Offset && want[next] == "" {
			next++
		}
		require.Equal(t, next, r.Offset)
		if r.Fault == "" {
			require.Equal(t, want[r.Offset], string(r.Body), "at %d", r.Offset)
			next++
			continue
		}
		require.Empty(t, r.Body)
		require.GreaterOrEqual(t, r.Through, r.Offset)
		for at := r.Offset; at <= r.Through; at++ {
			require.Empty(t, want[at], "%d was reported as %q", at, r.Fault)
		}
		next = r.Through + 1
	}
	require.EqualValues(t, len(want), next)
}

// entry is the content of a native publish, and the records that must be read from it.
type entry struct {
	bytes []byte
	want  expected
}

// garbage returns everything that a native client may write in the place of a record, between good
// records.
func garbage() []entry {
	good := func(name string) entry { return entry{single(dataMessage(name)), expected{name}} }
	bad := func(records int, bytes []byte) entry { return entry{bytes, make(expected, records)} }
	batch := func(compression byte) entry {
		return entry{subBatch(compression, bodies("x", 3)...), expected{"x0", "x1", "x2"}}
	}
	return []entry{
		good("first"),
		bad(1, single([]byte(`{"class": "not AMQP 1.0"}`))),
		bad(1, single(nil)),
		bad(1, single(valueMessage("value"))),
		good("between"),
		batch(0), batch(1), batch(2), batch(3), batch(4),
		good("and"),
		bad(3, rawSubBatch(1, 3, 30, []byte("not gzip"))),
		bad(3, rawSubBatch(2, 3, 30, []byte("not snappy"))),
		bad(3, rawSubBatch(3, 3, 30, []byte("not lz4"))),
		bad(3, rawSubBatch(4, 3, 30, []byte("not zstd"))),
		bad(2, rawSubBatch(7, 2, 30, []byte("unknown"))),
		bad(2, rawSubBatch(1, 2, 1<<31, compress(1, single(dataMessage("lies about its size"))))),
		good("then"),
		{rawSubBatch(0, 5, 10, slicesConcat(single(dataMessage("only")), single(dataMessage("two")))),
			expected{"only", "two", "", "", ""}},
		{rawSubBatch(0, 2, 10, append(single(dataMessage("cut")), 0, 0, 1, 0, 'x')), expected{"cut", ""}},
		{rawSubBatch(0, 1, 10, slicesConcat(single(dataMessage("one")), single(dataMessage("too many")))), expected{"one"}},
		good("last"),
	}
}

func isLast(r wire.Record) bool { return string(r.Body) == "last" }

func TestNativeReadsAroundGarbage(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return
	}
	var accepted [][]byte
	var want expected
	t.Run("apart", func(t *testing.T) {
		stream := b.stream(t)
		p := newNativePublisher(t, b, stream)
		for _, e := range garbage() {
			if p.try(e.bytes) {
				accepted, want = append(accepted, e.bytes), append(want, e.want...)
			}
		}
		readGarbage(t, b, stream, want)
	})
	t.Run("together", func(t *testing.T) { // in one chunk, or in a few
		stream := b.stream(t)
		newNativePublisher(t, b, stream).publish(accepted...)
		readGarbage(t, b, stream, want)
	})
}

func readGarbage(t *testing.T, b *testBroker, stream string, want expected) {
	tr := transportCases[0].open(t, b, Config{})
	for from := int64(0); from < int64(len(want)); from += 3 {
		want.requireRead(t, from, readUntil(t, tr, stream, from, isLast), false)
	}
	for offset, body := range want {
		r, err := tr.Fetch(t.Context(), stream, int64(offset))
		require.NoError(t, err)
		require.EqualValues(t, offset, r.Offset)
		require.Equal(t, body, string(r.Body))
		require.Equal(t, body == "", r.Fault != "")
	}
	last, ok, err := tr.Last(t.Context(), stream)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, len(want)-1, last)
}

// A small entry may unpack to more bytes than fit in memory, or to values that are nested too
// deeply for the stack.
func TestNativeReadsAroundBombs(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return
	}
	stream := b.stream(t)
	newNativePublisher(t, b, stream).publish(
		rawSubBatch(1, 2, 10, compress(1, make([]byte, maxUnpacked+1))),
		subBatch(1, append([]byte{0, 0x53, sectionHeader}, make([]byte, 32<<20)...)),
		single(dataMessage("last")))
	records := readUntil(t, transportCases[0].open(t, b, Config{}), stream, 0, isLast)
	expected{"", "", "", "last"}.requireRead(t, 0, records, false)
}

// Over AMQP 0-9-1 the broker closes the connection at such records. The reader gets past each of
// them.
func TestAMQPStepsOverGarbage(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return
	}
	stream := b.stream(t)
	p := newNativePublisher(t, b, stream)
	want := expected{"first", "", "between", "", "", "", "", "last"}
	p.publish(single(dataMessage("first")))
	p.publish(single([]byte("garbage")))
	p.publish(single(dataMessage("between")))
	p.publish(subBatch(1, bodies("x", 3)...))
	p.publish(single(valueMessage("value")))
	p.publish(single(dataMessage("last")))
	tr := openTransport(t, b, Config{})
	for from := range int64(len(want)) {
		want.requireRead(t, from, readUntil(t, tr, stream, from, isLast), true)
	}
	want.requireRead(t, 0, readUntil(t, tr, stream, First, isLast), true)
	for offset, body := range want {
		r, err := tr.Fetch(t.Context(), stream, int64(offset))
		if body == "" {
			require.True(t, r.Fault != "" || errors.Is(err, ErrNotFound))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, body, string(r.Body))
	}
}

// A record that is written behind garbage is delivered, however late it is written.
func TestAMQPStepsOverGarbageAtEnd(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return
	}
	stream := b.stream(t)
	p := newNativePublisher(t, b, stream)
	p.publish(single(dataMessage("first")))
	p.publish(single([]byte("garbage")))
	log, reading := watchLog(t)
	tr := openTransport(t, b, Config{Log: log})
	records := readUntilInBackground(t, tr, stream, isLast)
	for range 8 { // the reader dies, steps over the garbage, waits in vain, and tries again
		await(t, reading)
	}
	last, ok, err := tr.Last(t.Context(), stream)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 1, last)
	p.publish(single(dataMessage("last")))
	expected{"first", "", "last"}.requireRead(t, 0, records(), false)
}

// A broker in trouble may close connections for other reasons. A record must not be lost because it
// was suspected to be unreadable.
func TestAMQPStepsBack(t *testing.T) {
	b := newTestBroker(t)
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, 3)...)
	log, reading := watchLog(t)
	tr := openTransport(t, b, Config{Log: log}).(*amqpTransport)
	step := tr.steps.of(stream)
	next := b.first + 3
	require.False(t, step.died(next))
	require.True(t, step.died(next)) // now the reader assumes an unreadable record there
	out := newAhead(1 << 20)
	r := &amqpReader{cfg: tr.cfg, hosts: tr.hosts, stream: stream, from: 0, next: next + 1, out: out, step: step, stepped: true}
	ended := make(chan error)
	go func() { ended <- r.session(t.Context()) }()
	await(t, reading)
	b.publish(t, stream, b.numbered(3, 1)...)
	select {
	case err := <-ended:
		require.Equal(t, errProbe, err)
	case <-time.After(5 * time.Second):
		require.FailNow(t, "it believes for ever")
	}
	records := readUntil(t, tr, stream, next, func(wire.Record) bool { return true })
	require.Equal(t, fmt.Sprint(next), string(records[0].Body))
	require.False(t, step.behind(next+1), "the suspicion is gone")
}

// A chunk that is too large to be read in one go, with large and small records, is read completely.
func TestNativeReadsLargeChunk(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return
	}
	stream := b.stream(t)
	p := newNativePublisher(t, b, stream)
	var entries [][]byte
	for i := range 20 {
		entries = append(entries, single(dataMessage(strings.Repeat(string(rune('a'+i)), 400_000))), single(dataMessage("small")))
	}
	entries = append(entries, single([]byte("garbage")), subBatch(0, bodies("x", 3)...), subBatch(4, bodies("y", 3)...), single(dataMessage("last")))
	if b.features.LargeStreamFrames {
		p.publish(entries...)
	} else {
		for _, e := range entries {
			p.send(e)
		}
		p.wait(len(entries))
	}
	tr := transportCases[0].open(t, b, Config{})
	var whole int
	for _, from := range []int64{0, 1, 30, 39, 40, 41, 42, 44, 46, 47} {
		records := readUntil(t, tr, stream, from, isLast)
		require.Len(t, records, 48-int(from))
		for i, r := range records {
			require.Equal(t, from+int64(i), r.Offset)
			if r.Offset < 40 && r.Offset%2 == 0 {
				require.Equal(t, 400_000, bytes.Count(r.Body, []byte{byte('a' + r.Offset/2)}))
				whole++
			}
		}
		if from <= 40 {
			require.NotEmpty(t, records[40-from].Fault)
		}
	}
	require.NotZero(t, whole)
}

package streams

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// received returns a link that receives b, and then the end of the connection.
func received(t *testing.T, b []byte) *link {
	near, far := net.Pipe()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = far.Write(b)
		_ = far.Close()
	}()
	t.Cleanup(func() {
		near.Close()
		<-sent
	})
	return &link{conn: near, in: bufio.NewReader(near), heartbeat: time.Second, timeout: time.Second}
}

// delivery returns a frame with a chunk of the records 10, 11, …. Its header may state anything.
func delivery(entries, records int, data []byte, crc uint32) []byte {
	r := newRequest(cmdDeliver).u8(subscriptionID)
	r.u8(0x50).u8(0).u16(uint16(entries)).u32(uint32(records)).u64(1_000_000).u64(1).u64(10)
	r.u32(crc).u32(uint32(len(data))).u32(0).u32(0)
	r.b = append(r.b, data...)
	return r.frame()
}

func readChunk(t *testing.T, frame []byte, from int64) (records []wire.Record, err error) {
	l := received(t, frame)
	f, err := l.read()
	require.NoError(t, err)
	require.EqualValues(t, cmdDeliver, f.command)
	f.content.u8()
	header, err := readChunkHeader(f.content)
	if err != nil {
		return nil, err
	}
	r := chunkReader{chunk: header, stream: "s", from: from, emit: func(r wire.Record) error {
		records = append(records, r)
		return nil
	}}
	return records, r.read(f.content)
}

func TestChunk(t *testing.T) {
	data := slicesConcat(single(dataMessage("a")), subBatch(0, bodies("b", 2)...), single(dataMessage("c")))
	good := crc32.ChecksumIEEE(data)
	tooBig := []byte{0, 0, 1, 0, 'x'}
	stored := time.Unix(1000, 0).UTC()
	record := func(offset int64, body string) wire.Record {
		return wire.Record{Stream: "s", Offset: offset, Time: stored, Body: []byte(body)}
	}
	fault := func(first, through int64, reason string) wire.Record {
		return wire.Record{Stream: "s", Offset: first, Through: through, Time: stored, Fault: "unreadable: " + reason}
	}
	const rotten = "the broker's storage gave back other bytes than were stored (checksum)"
	for name, c := range map[string]struct {
		frame []byte
		from  int64
		want  []wire.Record
		lost  bool
	}{
		"whole": {frame: delivery(3, 4, data, good),
			want: []wire.Record{record(10, "a"), record(11, "b0"), record(12, "b1"), record(13, "c")}},
		"from the middle":     {frame: delivery(3, 4, data, good), from: 12, want: []wire.Record{record(12, "b1"), record(13, "c")}},
		"from its end":        {frame: delivery(3, 4, data, good), from: 13, want: []wire.Record{record(13, "c")}},
		"from behind it":      {frame: delivery(3, 4, data, good), from: 14},
		"rotten":              {frame: delivery(3, 4, data, good+1), want: []wire.Record{fault(10, 13, rotten)}},
		"rotten, from inside": {frame: delivery(3, 4, data, good+1), from: 12, want: []wire.Record{fault(12, 13, rotten)}},
		"rotten, from behind": {frame: delivery(3, 4, data, good+1), from: 14},
		"too few records": {frame: delivery(3, 6, data, good), from: 13,
			want: []wire.Record{record(13, "c"), fault(14, 15, "the chunk holds fewer records than it says")}},
		"too few entries": {frame: delivery(4, 5, data, good), from: 13,
			want: []wire.Record{record(13, "c"), fault(14, 14, "the chunk is shorter than what it holds")}},
		"cut in its head": {frame: delivery(3, 4, data, good)[:40], lost: true},
		"cut":             {frame: delivery(3, 4, data, good)[:70], lost: true},
		"an entry too big": {frame: delivery(2, 2, tooBig, crc32.ChecksumIEEE(tooBig)),
			want: []wire.Record{fault(10, 11, "the chunk is shorter than what it holds")}},
	} {
		t.Run(name, func(t *testing.T) {
			records, err := readChunk(t, c.frame, c.from)
			require.Equal(t, c.want, records)
			if c.lost {
				require.ErrorIs(t, err, ErrLost)
				return
			}
			require.NoError(t, err)
		})
	}
}

// A large chunk is read piece by piece, with the same result.
func TestLargeChunk(t *testing.T) {
	big := single(dataMessage(string(make([]byte, wholeChunk))))
	data := slicesConcat(single(dataMessage("a")), big, subBatch(1, bodies("b", 2)...), single(dataMessage("c")))
	frame := delivery(4, 5, data, 0)
	for from := int64(10); from <= 15; from++ {
		records, err := readChunk(t, frame, from)
		require.NoError(t, err)
		require.Len(t, records, int(15-from))
		for i, r := range records {
			require.Equal(t, from+int64(i), r.Offset)
			require.Empty(t, r.Fault)
		}
	}
	for _, cut := range []int{60, 100, wholeChunk, len(frame) - 1} {
		_, err := readChunk(t, frame[:cut], 10)
		require.ErrorIs(t, err, ErrLost, "at %d", cut)
		_, err = readChunk(t, frame[:cut], 14)
		require.ErrorIs(t, err, ErrLost, "at %d", cut)
	}
	lie := slicesConcat(big, binary.BigEndian.AppendUint32(nil, 1<<30), []byte("x"))
	records, err := readChunk(t, delivery(2, 3, lie, 0), 10)
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Equal(t, []int64{11, 12}, []int64{records[1].Offset, records[1].Through})
}

func TestLinkRefusesNonsense(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":      nil,
		"half a frame": {0, 0, 0, 9, 0},
		"short frame":  {0, 0, 0, 1, 0},
		"close":        newRequest(cmdClose).u32(1).u16(13).str("unknown frame").frame(),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := received(t, b).read()
			require.ErrorIs(t, err, ErrLost)
		})
	}
	l := received(t, newRequest(cmdOpen|response).u32(1).u16(codeOK).frame())
	require.ErrorContains(t, l.tune(), "should tune")
	for code, want := range map[uint16]error{
		codeNoStream: ErrNoStream, codeStreamNotAvailable: ErrLost, codeAccessRefused: ErrRefused, 15: ErrLost,
	} {
		require.ErrorIs(t, codeError(code), want)
	}
}

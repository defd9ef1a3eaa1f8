package tracker

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// The store's tables, by the first byte of their keys.
const (
	tableEntry     = 'e' // stream offset            → stored entry
	tableList      = 'l' // stream at offset         → summary; what the lists show, by time
	tableFire      = 'f' // queue 0 at stream offset → ; what may fire, by queue and due time
	tableJID       = 'j' // stream hash(jid) offset  →
	tableMark      = 'w' // stream offset            → mark; what the journal says of an entry that is doubtful, parked or not read yet
	tableDoubtful  = 'd' // epoch seq                → stream offset
	tableCount     = 'c' // stream kind name         → count
	tableReject    = 'r' // stream 0 offset          → rejected record
	tableHappened  = 'h' // stream hash(jid)         → what became of the entry that had the jid last
	tableHistory   = 'H' // journal offset           → key in tableHappened
	tableCommand   = 'k' // command id               → reply
	tableCommands  = 'K' // journal offset           → key in tableCommand
	tableOperation = 'o' // 0 or 1, id             → operation as JSON, or the jids that it names
	tableDead      = 'x' // dropped at offset        → ; dead jobs, by when they died
	tableTelling   = 'a' // stream offset            → what the journal has not told yet of a replacement; empty where only that was read
	tablePaused    = 's' //                          → the paused queues, as JSON
	tableEnqueued  = 'i' // 0 hash(key), or 1 at hash(key) → what was enqueued under a key
	tableAct       = 'y' // list offset                → what was done, by the offset of the journal's record
	tableCopy      = 'g' // offset                     → ; jobs of jobs.gated that are fires which found no queue
	tableMeta      = 'm' //                          → state, as JSON
	// 'p' is the table of package processes, 'M' begins those of package metrics.
)

// code is one byte for a stream. 0 stands for no stream: a fire that has no entry.
type code byte

var codes = map[string]code{wire.ScheduledJobs: 1, wire.Retries: 2, wire.DeadJobs: 3, wire.Gated: 4}

var names = map[code]string{1: wire.ScheduledJobs, 2: wire.Retries, 3: wire.DeadJobs, 4: wire.Gated}

// place is where an entry stands.
type place struct {
	stream code
	offset int64
}

func (p place) name() string { return names[p.stream] }

func (p place) append(b []byte) []byte { return appendInt(append(b, byte(p.stream)), p.offset) }

func placeOf(b []byte) place { return place{code(b[0]), intOf(b[1:])} }

// appendInt writes n so that bytes sort as numbers do.
func appendInt(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)^1<<63) }

func intOf(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

const (
	placeLen = 9
	intLen   = 8
)

func keyEntry(p place) []byte { return p.append([]byte{tableEntry}) }

func keyTelling(p place) []byte { return p.append([]byte{tableTelling}) }

func keyMark(p place) []byte { return p.append([]byte{tableMark}) }

func keyList(p place, at time.Time) []byte {
	return appendInt(appendInt([]byte{tableList, byte(p.stream)}, at.UnixMicro()), p.offset)
}

func listKeyParts(key []byte) (at time.Time, offset int64) {
	return time.UnixMicro(intOf(key[2:])).UTC(), intOf(key[2+intLen:])
}

func keyFire(queue string, at time.Time, p place) []byte {
	return p.append(appendInt(keyFireQueue(queue), at.UnixMicro()))
}

// keyFireQueue begins the keys of a queue. Queue names have no control characters, so none is the beginning of another.
func keyFireQueue(queue string) []byte {
	return append(append([]byte{tableFire}, queue...), 0)
}

func keyJID(p place, jid string) []byte { return appendInt(keyJIDs(p.stream, jid), p.offset) }

func keyJIDs(stream code, jid string) []byte {
	return appendHash([]byte{tableJID, byte(stream)}, wire.JIDTag(jid))
}

func keyDoubtful(epoch, seq int64) []byte {
	return appendInt(appendInt([]byte{tableDoubtful}, epoch), seq)
}

func keyCount(stream code, kind byte, name string) []byte {
	return append([]byte{tableCount, byte(stream), kind}, name...)
}

func keyRejects(stream string) []byte { return append(append([]byte{tableReject}, stream...), 0) }

func keyReject(stream string, offset int64) []byte { return appendInt(keyRejects(stream), offset) }

func keyHappened(stream code, tag string) []byte {
	return appendHash([]byte{tableHappened, byte(stream)}, tag)
}

func appendHash(b []byte, s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return append(b, sum[:16]...)
}

// after is the first key behind all keys that begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

package tracker

import (
	"math"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// The store's tables, by the first byte of their keys. Packages metrics, processes and audit have
// tables of their own: 'M', 'p' and 'y'.
const (
	tableEntry     = 'e' // stream offset            → stored entry
	tableList      = 'l' // stream at offset         → summary; what the lists show, by time
	tableFire      = 'f' // queue 0 at stream offset → ; what may fire, by queue and due time
	tableJID       = 'j' // stream hash(jid) offset  →
	tableMark      = 'w' // stream offset            → mark
	tableDoubtful  = 'd' // epoch seq                → stream offset
	tableCount     = 'c' // stream kind name         → count
	tableReject    = 'r' // stream 0 offset          → rejected record
	tableHappened  = 'h' // stream hash(jid)         → the last outcome of the jid's entry
	tableHistory   = 'H' // journal offset           → key in tableHappened
	tableCommand   = 'k' // command id               → 1
	tableCommands  = 'K' // journal offset           → key in tableCommand
	tableOperation = 'o' // 0 or 1, id               → operation as JSON, or the jids that it names
	tableDead      = 'x' // dropped at offset        → ; dead jobs, by when they died
	tableTelling   = 'a' // stream offset            → announcement
	tablePaused    = 's' //                          → the paused queues, as JSON
	tableEnqueued  = 'i' // 0 hash(key), or 1 at hash(key) → the job enqueued under a key
	tableCopy      = 'g' // offset                   → ; jobs of jobs.gated that are fires which found no queue
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

const (
	minOffset = math.MinInt64
	noOffset  = math.MaxInt64
)

func (p place) name() string { return names[p.stream] }

func (p place) append(b []byte) []byte { return table.AppendInt(append(b, byte(p.stream)), p.offset) }

func placeOf(b []byte) place { return place{code(b[0]), table.Int(b[1:])} }

func keyEntry(p place) []byte { return p.append([]byte{tableEntry}) }

func keyTelling(p place) []byte { return p.append([]byte{tableTelling}) }

func keyMark(p place) []byte { return p.append([]byte{tableMark}) }

func keyList(p place, at time.Time) []byte {
	return table.AppendInt(table.AppendInt([]byte{tableList, byte(p.stream)}, at.UnixMicro()), p.offset)
}

func listKeyParts(key []byte) (at time.Time, offset int64) {
	return time.UnixMicro(table.Int(key[2:])).UTC(), table.Int(key[2+table.IntLen:])
}

func keyFire(queue string, at time.Time, p place) []byte {
	return p.append(table.AppendInt(keyFireQueue(queue), at.UnixMicro()))
}

// keyFireQueue begins the keys of a queue. Queue names have no control characters, so no name is
// the beginning of another with the zero.
func keyFireQueue(queue string) []byte {
	return append(append([]byte{tableFire}, queue...), 0)
}

func keyJID(p place, jid string) []byte { return table.AppendInt(keyJIDs(p.stream, jid), p.offset) }

func keyJIDs(stream code, jid string) []byte {
	return table.AppendHash([]byte{tableJID, byte(stream)}, wire.JIDTag(jid))
}

func keyDoubtful(epoch, seq int64) []byte {
	return table.AppendInt(table.AppendInt([]byte{tableDoubtful}, epoch), seq)
}

func keyCount(stream code, kind byte, name string) []byte {
	return append([]byte{tableCount, byte(stream), kind}, name...)
}

func keyRejects(stream string) []byte { return append(append([]byte{tableReject}, stream...), 0) }

func keyReject(stream string, offset int64) []byte {
	return table.AppendInt(keyRejects(stream), offset)
}

func keyHappened(stream code, tag string) []byte {
	return table.AppendHash([]byte{tableHappened, byte(stream)}, tag)
}

// listKeyLen is the length of a key in tableList.
const listKeyLen = 2 + 2*table.IntLen

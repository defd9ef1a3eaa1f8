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
	tableDoubts    = 'd' // epoch seq                → stream offset
	tableCount     = 'c' // stream kind name         → count
	tableReject    = 'r' // stream 0 offset          → rejected record
	tableOutcome   = 'h' // stream hash(jid)         → the last outcome of the jid's entry
	tableOutcomes  = 'H' // journal offset           → key in tableOutcome
	tableCommand   = 'k' // command id               → 1
	tableCommands  = 'K' // journal offset           → key in tableCommand
	tableOperation = 'o' // 0 or 1, id               → operation as JSON, or the jids that it names
	tableDead      = 'x' // dropped at offset        → ; dead jobs, by when they died
	tableAnnounced = 'a' // stream offset            → announcement
	tablePaused    = 's' //                          → the paused queues, as JSON
	tablePeriodic  = 't' // name                     → periodic job, as JSON
	tableEnqueued  = 'i' // 0 hash(key), or 1 at hash(key) → the job enqueued under a key
	tableCopy      = 'g' // offset                   → ; jobs of jobs.gated that are fires which found no queue
	tableGroup     = 'G' // group at stream offset   → ; what may fire if its limits allow, by group and due time
	tableSlot      = 'S' // stream offset            → the slot that the entry holds, as JSON
	tableEnds      = 'E' // source stream offset jid → nothing: a record of the source says that the job has ended
	indexEnds      = 'F' // source offset            → key in tableEnds
	tableLimit     = 'L' // name                     → limit, as JSON
	tableUnique    = 'U' // hash kind stream offset  → hold of a key, as JSON
	tablePeriodEnd = 'P' // until hash               → the key that is taken for a time until then
	tableUndecided = 'Q' // offset                   → ; unique jobs of jobs.gated of which it is not decided whether they have their keys
	tableDecision  = 'V' // offset                   → decision about an entry of jobs.gated that was not read yet, as JSON
	tableGoverned  = 'q' // name                     → governed queue, as JSON
	tableRate      = 'R' // id                       → when the rate is free again
)

// code is one byte for a stream. 0 is no stream: that of a fire that has no entry.
type code byte

var codes = map[string]code{wire.ScheduledJobs: 1, wire.Retries: 2, wire.DeadJobs: 3, wire.Gated: 4}

var names = map[code]string{1: wire.ScheduledJobs, 2: wire.Retries, 3: wire.DeadJobs, 4: wire.Gated}

// entryID is the stream and the offset of an entry.
type entryID struct {
	stream code
	offset int64
}

const (
	minOffset = math.MinInt64
	noOffset  = math.MaxInt64
)

func (id entryID) name() string { return names[id.stream] }

func (id entryID) append(b []byte) []byte {
	return table.AppendInt(append(b, byte(id.stream)), id.offset)
}

// entryIDLen is the length of an entryID in a key.
const entryIDLen = 1 + table.IntLen

func entryIDOf(b []byte) entryID { return entryID{code(b[0]), table.Int(b[1:])} }

func keyEntry(id entryID) []byte { return id.append([]byte{tableEntry}) }

func keyAnnounced(id entryID) []byte { return id.append([]byte{tableAnnounced}) }

func keyMark(id entryID) []byte { return id.append([]byte{tableMark}) }

func keyList(id entryID, at time.Time) []byte {
	return table.AppendInt(table.AppendInt([]byte{tableList, byte(id.stream)}, at.UnixMicro()), id.offset)
}

func listKeyParts(key []byte) (at time.Time, offset int64) {
	return time.UnixMicro(table.Int(key[2:])).UTC(), table.Int(key[2+table.IntLen:])
}

func keyFire(queue string, at time.Time, id entryID) []byte {
	return id.append(table.AppendInt(keyFireQueue(queue), at.UnixMicro()))
}

// keyFireQueue begins the keys of a queue. Queue names have no control characters, so no name is
// the beginning of another with the zero.
func keyFireQueue(queue string) []byte {
	return append(append([]byte{tableFire}, queue...), 0)
}

func keyJID(id entryID, tag string) []byte {
	return table.AppendInt(keyJIDs(id.stream, tag), id.offset)
}

func keyJIDs(stream code, tag string) []byte {
	return table.AppendHash([]byte{tableJID, byte(stream)}, tag)
}

func keyDoubt(epoch, seq int64) []byte {
	return table.AppendInt(table.AppendInt([]byte{tableDoubts}, epoch), seq)
}

func keyCount(stream code, kind byte, name string) []byte {
	return append([]byte{tableCount, byte(stream), kind}, name...)
}

func keyRejects(stream string) []byte { return append(append([]byte{tableReject}, stream...), 0) }

func keyReject(stream string, offset int64) []byte {
	return table.AppendInt(keyRejects(stream), offset)
}

func keyOutcome(stream code, tag string) []byte {
	return table.AppendHash([]byte{tableOutcome, byte(stream)}, tag)
}

// listKeyLen is the length of a key in tableList.
const listKeyLen = 2 + 2*table.IntLen

func keyCopy(offset int64) []byte { return table.AppendInt([]byte{tableCopy}, offset) }

// keyGroup begins the keys of a group's entries.
func keyGroup(g wire.Group) []byte {
	b := keyGroupsOf(g.Queue)
	for _, text := range []string{g.Class, g.Key} {
		b = table.AppendText(b, text)
	}
	return b
}

// keyGroupsOf begins the keys of all groups of a queue.
func keyGroupsOf(queue string) []byte { return table.AppendText([]byte{tableGroup}, queue) }

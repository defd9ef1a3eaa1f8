package metrics

import (
	"encoding/binary"
	"math"

	"github.com/millrace-jobs/millrace/tracker/table"
)

// The store's tables: all keys begin with these two bytes.
const (
	prefix = 'M'

	tableState   = 's' //                       → state, as JSON
	tableMinute  = 'm' // start class queue     → row
	tableHour    = 'h' // start class queue     → row
	tableDay     = 'd' // start class queue     → row
	tableAllTime = 'e' // 0 class queue         → row: all-time sums
	tableOpen    = 'o' // minute class queue    → row of the segment that is not closed yet
	tableSegment = 'p' // from                  → roll-up, as JSON
	tableDeploy  = 'D' // at label              → deploy, as JSON
)

// Spans of time in seconds.
const (
	minute = 60
	hour   = 3600
	day    = 86400
)

// kept is for how long the rows of a table are kept, in seconds, and what their starts are
// multiples of.
var kept = []struct {
	table byte
	step  int64
	age   int64
}{
	{tableMinute, minute, 72 * hour},
	{tableHour, hour, 90 * day},
	{tableDay, day, 5 * 366 * day},
	{tableAllTime, math.MaxInt64, math.MaxInt64},
}

// pair identifies a sum. Both names are empty for everything beyond the bound on names.
type pair struct{ class, queue string }

// cell is where a record counts first.
type cell struct {
	minute int64 // seconds since 1970
	pair
}

func keyRows(t byte) []byte { return []byte{prefix, t} }

func keyStart(t byte, start int64) []byte {
	return binary.BigEndian.AppendUint64(keyRows(t), uint64(start)^1<<63)
}

func keyRow(t byte, start int64, p pair) []byte {
	return append(table.AppendText(keyStart(t, start), p.class), p.queue...)
}

func startOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[2:]) ^ 1<<63) }

func pairOf(key []byte) pair {
	d := table.Decoder{B: key[2+8:]}
	class := string(d.Bytes())
	return pair{class, string(d.B)}
}

// floor returns the largest multiple of step up to t, also before 1970.
func floor(t, step int64) int64 {
	if step == math.MaxInt64 {
		return 0
	}
	return t - (t%step+step)%step
}

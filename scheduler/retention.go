package scheduler

import (
	"time"
)

const (
	// carryUnknown is how often low water is moved if the retention in force is not known.
	carryUnknown = time.Hour
	// carrySeldom is how often it is moved if retention is longer, or nothing is ever removed: a
	// view that is rebuilt reads from low water on.
	carrySeldom = 84 * time.Hour // half of the seven days that the journal is kept by default
)

// carryDue reports whether a carry-over is due: at half the shortest retention in force, by age or
// by bytes, of the journal and the entry streams.
func (q *queueBook) carryDue(now time.Time) bool {
	every, full := q.carryEvery()
	return full || now.Sub(q.entries.LowWaterAt()) > every
}

// carryEvery returns how often that is by age, and whether it is due by bytes.
func (q *queueBook) carryEvery() (every time.Duration, full bool) {
	q.mu.Lock()
	kept := q.kept
	q.mu.Unlock()
	every = carrySeldom
	if kept == nil {
		every = carryUnknown
	}
	for _, stream := range leaderStreams {
		r := kept[stream]
		if r.Age > 0 {
			every = min(every, r.Age/2)
		}
		full = full || r.Bytes > 0 && q.entries.Written(stream) > r.Bytes/2
	}
	return every, full
}

// onDisk is after how long a broker has written to its disk what it took: Linux does so within 35
// seconds.
const onDisk = time.Minute

// linger returns how long a carry-over leaves low water where it is: less if little is kept, which
// may be known only since now.
func (q *queueBook) linger(now time.Time) time.Duration {
	every, _ := q.carryEvery()
	return min(onDisk, now.Sub(q.entries.LowWaterAt())/8, every/8)
}

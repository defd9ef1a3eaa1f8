package scheduler

import (
	"time"
)

const (
	// carryUnknown is how often low water is moved where the retention in force is not known.
	carryUnknown = time.Hour
	// carrySeldom is how often it is moved where the retention is longer, or nothing is ever forgotten: a view that is built anew reads
	// from low water on.
	carrySeldom = 84 * time.Hour // half of the seven days that the journal is kept by default
)

// carryDue tells whether it is time to append again what is pending: at half the shortest retention in force, in age or bytes, of the
// journal and the entry streams.
func (q *queueBook) carryDue(now time.Time) bool {
	every, full := q.carryEvery()
	return full || now.Sub(q.entries.LowWaterAt()) > every
}

// carryEvery is how often that is by age, and whether it is time by bytes.
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

// onDisk is when a broker has surely brought to its disk what it took in: Linux does within 35 seconds by itself.
const onDisk = time.Minute

// linger is for how long a carry-over leaves low water where it is: less where little is kept, which may be known only since now.
func (q *queueBook) linger(now time.Time) time.Duration {
	every, _ := q.carryEvery()
	return min(onDisk, now.Sub(q.entries.LowWaterAt())/8, every/8)
}

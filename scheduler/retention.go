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
func (s *Scheduler) carryDue(now time.Time) bool {
	every, full := s.carryEvery()
	return full || now.Sub(s.entries.LowWaterAt()) > every
}

// carryEvery is how often that is by age, and whether it is time by bytes.
func (s *Scheduler) carryEvery() (every time.Duration, full bool) {
	s.mu.Lock()
	kept := s.kept
	s.mu.Unlock()
	every = carrySeldom
	if kept == nil {
		every = carryUnknown
	}
	for _, stream := range ledBy {
		r := kept[stream]
		if r.Age > 0 {
			every = min(every, r.Age/2)
		}
		full = full || r.Bytes > 0 && s.entries.Written(stream) > r.Bytes/2
	}
	return every, full
}

// onDisk is when a broker has surely brought to its disk what it took in: Linux does within 35 seconds by itself.
const onDisk = time.Minute

// linger is for how long a carry-over leaves low water where it is: less where little is kept, which may be known only since now.
func (s *Scheduler) linger(now time.Time) time.Duration {
	every, _ := s.carryEvery()
	return min(onDisk, now.Sub(s.entries.LowWaterAt())/8, every/8)
}

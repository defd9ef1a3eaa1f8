package tracker

import "github.com/millrace-jobs/millrace/wire"

// leases stands for a stream in lists, counts and the index of jids: a lease is an entry of the scheduled jobs, and is not shown as one.
const leases code = 5

// listed is where an entry stands in lists.
func (s *Stored) listed() place {
	p := s.place()
	if s.Leased != "" {
		p.stream = leases
	}
	return p
}

// Leases gives the leases that are held of the job with a jid.
func (t *Entries) Leases(jid string) (held []*Stored, err error) {
	prefix := keyJIDs(leases, jid)
	var offsets []int64
	err = t.store.Scan(prefix, after(prefix), false, func(key, _ []byte) bool {
		offsets = append(offsets, intOf(key[len(prefix):]))
		return len(offsets) < maxFound
	})
	for _, o := range offsets {
		s, fault := storedAt(t.store, place{codes[wire.ScheduledJobs], o})
		if fault != nil {
			return nil, fault
		}
		if s != nil && s.Leased == jid {
			held = append(held, s)
		}
	}
	return held, err
}

// LeasedOf is how many jobs of a queue are leased.
func (t *Entries) LeasedOf(queue string) int64 { return t.counts.of(leases, countQueue, queue) }

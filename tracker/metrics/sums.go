package metrics

import (
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxAdded  = 20_000 // cells in memory
	maxDays   = 16     // days whose names are in memory
	maxCached = 4096   // rows of the store that are kept decoded
)

// sums has the sums that are in memory.
type sums struct {
	added    map[cell]*row   // since the last flush
	flushing map[cell]*row   // being written
	cached   map[string]*row // rows of the store that are added to often
	days     map[int64]*names
	allTime  map[pair]bool // those that have all-time sums
	total    Counts
}

func newSums() sums {
	return sums{added: map[cell]*row{}, cached: map[string]*row{}, days: map[int64]*names{}, allTime: map[pair]bool{}}
}

func (s *sums) load(in view.Reader) error {
	return scan(in, tableAllTime, 0, 1, false, func(_ int64, p pair, r *row) {
		s.allTimePair(p)
		s.total = s.total.plus(r.outcome())
	})
}

// count counts one record, and returns where it counts.
func (s *sums) count(tx *view.Tx, c cell, rec *wire.Metric, errorClass string) (cell, error) {
	r, known := s.added[c]
	if !known || errorClass != "" {
		names, err := s.namesOf(tx, floor(c.minute, day))
		if err != nil {
			return c, err
		}
		c.pair, errorClass = names.admit(c.pair, errorClass)
		r = s.added[c]
	}
	if r == nil {
		r = &row{}
		s.added[c] = r
	}
	r.add(rec, errorClass)
	one := row{}
	one.counts[outcomeOf(rec.Status)] = 1
	s.total = s.total.plus(one.outcome())
	if d := s.days[floor(c.minute, day)]; d != nil {
		d.total = d.total.plus(one.outcome())
	}
	return c, nil
}

// flush writes the rows that were added, to every table to which they belong.
func (s *sums) flush(tx *view.Tx, now int64) error {
	s.flushing, s.added = s.added, map[cell]*row{}
	if len(s.cached) > maxCached {
		clear(s.cached)
	}
	dirty := map[string]*row{}
	for c, r := range s.flushing {
		if err := s.addTo(tx, dirty, keyRow(tableOpen, c.minute, c.pair), r); err != nil {
			return err
		}
		if err := s.spread(tx, dirty, c, r, now); err != nil {
			return err
		}
	}
	for key, r := range dirty {
		if err := tx.Set([]byte(key), r.encode()); err != nil {
			return err
		}
	}
	if len(s.days) >= maxDays {
		clear(s.days)
	}
	return nil
}

// spread adds the row of a minute to the sums of its minute, hour, day and of all time, unless they
// are too old to be kept.
func (s *sums) spread(tx *view.Tx, dirty map[string]*row, c cell, r *row, now int64) error {
	for _, k := range kept {
		p := c.pair
		if k.table == tableAllTime {
			p = s.allTimePair(p)
		} else if start := floor(c.minute, k.step); now-start > k.age {
			continue
		}
		if err := s.addTo(tx, dirty, keyRow(k.table, floor(c.minute, k.step), p), r); err != nil {
			return err
		}
	}
	return nil
}

// allTimePair bounds the pairs that have all-time sums.
func (s *sums) allTimePair(p pair) pair {
	if p != other && !s.allTime[p] && len(s.allTime) >= maxPairs {
		return other
	}
	if p != other {
		s.allTime[p] = true
	}
	return p
}

func (s *sums) addTo(tx *view.Tx, dirty map[string]*row, key []byte, r *row) (err error) {
	sum := dirty[string(key)]
	if sum == nil {
		sum = s.cached[string(key)]
	}
	if sum == nil {
		if sum, err = readRow(tx, key); err != nil {
			return err
		}
		s.cached[string(key)] = sum
	}
	dirty[string(key)] = sum
	sum.merge(r)
	return nil
}

// namesOf returns the names of a day. The transaction has the rows that are being flushed.
func (s *sums) namesOf(tx *view.Tx, start int64) (*names, error) {
	if n := s.days[start]; n != nil {
		return n, nil
	}
	n := &names{pairs: map[pair]map[string]bool{}}
	see := func(p pair, r *row) {
		n.learn(p, r)
		n.total = n.total.plus(r.outcome())
	}
	err := scan(tx, tableDay, start, start+1, false, func(_ int64, p pair, r *row) { see(p, r) })
	if err != nil {
		return nil, err
	}
	for c, r := range s.added {
		if floor(c.minute, day) == start {
			see(c.pair, r)
		}
	}
	s.days[start] = n
	return n, nil
}

// uncache drops the cached rows of a table that start before a time.
func (s *sums) uncache(t byte, before int64) {
	for key := range s.cached {
		if key[1] == t && startOf([]byte(key)) < before {
			delete(s.cached, key)
		}
	}
}

// visible calls fn for the rows that the store does not have yet.
func (s *sums) visible(fn func(cell, *row)) {
	for _, some := range []map[cell]*row{s.flushing, s.added} {
		for c, r := range some {
			fn(c, r)
		}
	}
}

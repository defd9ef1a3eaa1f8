package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// event is a line that a handler wrote: a job begins or ends.
type event struct {
	begins  bool
	id, key int
	pid     int
	at      time.Duration // of work.Now
}

// events reads the log of the handlers, as far as it has been written, in the order of time.
func events(file string) ([]event, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseEvents(f)
}

func parseEvents(r io.Reader) ([]event, error) {
	var all []event
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		e, err := parseEvent(strings.Fields(lines.Text()))
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b event) int { return int(a.at - b.at) })
	return all, lines.Err()
}

func parseEvent(fields []string) (e event, err error) {
	if len(fields) != 5 {
		return e, errors.New("it has not five fields")
	}
	var numbers [4]int
	for i := range numbers {
		if numbers[i], err = strconv.Atoi(fields[i+1]); err != nil {
			return e, err
		}
	}
	return event{fields[0] == "b", numbers[0], numbers[1], numbers[2], time.Duration(numbers[3])}, nil
}

// died is that a process was killed. Its jobs do not run any more from then on.
type died struct {
	pid int
	at  time.Duration
}

// counted is what the events of a row say.
type counted struct {
	most     int             // most jobs of a key that ran at once
	gaps     []time.Duration // from when a slot was free until the next job of its key began
	stuck    []time.Duration // from the death until a slot of the killed process had a job again
	unfilled int             // slots of the killed process that never had one again
	running  map[int]bool    // jobs that ran in the process when it was killed
	ends     map[int]int     // how often each job ended
	first    time.Duration   // when the first job began
	last     time.Duration   // when the last one ended
}

// count goes through events in the order of time, where each key has so many slots.
func count(all []event, limit int, death *died) *counted {
	c := &counted{running: map[int]bool{}, ends: map[int]int{}}
	keys := map[int]*slots{}
	for _, e := range all {
		if death != nil && e.at > death.at {
			c.bury(keys, death)
			death = nil
		}
		k := keys[e.key]
		if k == nil {
			k = &slots{jobs: map[job]bool{}}
			keys[e.key] = k
		}
		if e.begins {
			c.begin(k, e, limit)
		} else {
			c.end(k, e)
		}
	}
	if death != nil {
		c.bury(keys, death)
	}
	for _, k := range keys {
		c.unfilled += len(k.dead)
	}
	return c
}

// job is a job in a process.
type job struct{ id, pid int }

// slots are the slots of a key.
type slots struct {
	jobs map[job]bool    // those that run
	free []time.Duration // when slots became free, the one that waits longest first
	dead []time.Duration // when slots became free because the process was killed
}

func (c *counted) begin(k *slots, e event, limit int) {
	if c.first == 0 {
		c.first = e.at
	}
	k.jobs[job{e.id, e.pid}] = true
	c.most = max(c.most, len(k.jobs))
	if len(k.free) > 0 {
		c.gaps = append(c.gaps, e.at-k.free[0])
		k.free = k.free[1:]
	}
	// A slot of the killed process is in use again when the key has as many jobs as only with it.
	for len(k.dead) > 0 && len(k.jobs) > limit-len(k.dead) {
		c.stuck = append(c.stuck, e.at-k.dead[0])
		k.dead = k.dead[1:]
	}
}

func (c *counted) end(k *slots, e event) {
	delete(k.jobs, job{e.id, e.pid})
	k.free = append(k.free, e.at)
	c.ends[e.id]++
	c.last = e.at
}

// bury ends what ran in the process that was killed.
func (c *counted) bury(keys map[int]*slots, d *died) {
	for _, k := range keys {
		for j := range k.jobs {
			if j.pid == d.pid {
				delete(k.jobs, j)
				k.dead = append(k.dead, d.at)
				c.running[j.id] = true
			}
		}
	}
}

// perSecondOf returns how many jobs began in each of some whole seconds, the first one left out,
// and the most that began in any second, wherever it begins.
func perSecondOf(all []event, seconds int) (whole []int, most int) {
	var begins []time.Duration
	for _, e := range all {
		if e.begins {
			begins = append(begins, e.at)
		}
	}
	whole = make([]int, seconds)
	from := 0
	for i, at := range begins {
		if n := int((at - begins[0]) / time.Second); n >= 1 && n <= seconds {
			whole[n-1]++
		}
		for at-begins[from] >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return whole, most
}

// quantile returns the q-th quantile.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

package chaos

import (
	"fmt"
	"sync"
	"time"
)

// fate is what must happen to a job.
type fate int

const (
	comes   fate = iota // arrives in its queue, once
	stays               // is where it was: no action on it, and not due
	deleted             // never arrives
	dies                // becomes a dead job, and does not arrive
	unknown             // its last command was not answered: any of these
)

func (f fate) String() string { return [...]string{"comes", "stays", "deleted", "dies", "unknown"}[f] }

// account is a job, and what must happen to it.
type account struct {
	stream  string
	queue   string
	due     time.Time
	fate    fate
	answers []string // the answers of the leader
}

// accounts are all jobs of a scenario.
type accounts struct {
	mu  sync.Mutex
	all map[string]*account
}

func (a *accounts) open(jid, stream, queue string, due time.Time, f fate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[jid] = &account{stream: stream, queue: queue, due: due, fate: f}
}

func (a *accounts) set(jid string, f fate, answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.all[jid]
	j.fate = f
	if answer != "" {
		j.answers = append(j.answers, answer)
	}
}

func (a *accounts) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all)
}

// missing returns the number of jobs that must arrive and have not.
func (a *accounts) missing(c *counter) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for jid, j := range a.all {
		if came, _ := c.of(jid); j.fate == comes && came == 0 {
			n++
		}
	}
	return n
}

// reckoning is the result for all jobs.
type reckoning struct {
	lost, doubled, early, wrong []string
	doubledJIDs                 []string
}

// reckon compares the jobs that arrived with the accounts. where returns the sets that have an
// entry now.
func (a *accounts) reckon(c *counter, where func(jid string) []string) (r reckoning) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for jid, j := range a.all {
		n, first := c.of(jid)
		if n > 1 {
			r.doubled = append(r.doubled, fmt.Sprintf("%s came %d times %v", jid, n, j.answers))
			r.doubledJIDs = append(r.doubledJIDs, jid)
		}
		if n > 0 && first.Before(j.due) && len(j.answers) == 0 {
			r.early = append(r.early, fmt.Sprintf("%s came %v early", jid, j.due.Sub(first)))
		}
		if fault := j.fault(n, func() []string { return where(jid) }); fault != "" {
			r.add(j, n, fmt.Sprintf("%s (%s) %s: %s %v", jid, j.stream, j.fate, fault, j.answers))
		}
	}
	for jid := range c.jobs {
		if a.all[jid] == nil {
			r.wrong = append(r.wrong, jid+" was never published")
		}
	}
	return r
}

func (r *reckoning) add(j *account, n int, text string) {
	if n == 0 && j.fate != deleted {
		r.lost = append(r.lost, text)
		return
	}
	r.wrong = append(r.wrong, text)
}

// fault says what is wrong with the state of a job, or returns an empty text.
func (j *account) fault(n int, where func() []string) string {
	switch j.fate {
	case comes:
		if n == 0 {
			return fmt.Sprintf("it did not come; it is in %v", where())
		}
	case deleted:
		if n > 0 {
			return "it came"
		}
	case stays, dies, unknown:
		return j.kept(n, where())
	}
	return ""
}

func (j *account) kept(n int, sets []string) string {
	switch {
	case j.fate == dies && (n > 0 || len(sets) != 1 || sets[0] != "dead-jobs"), j.fate == stays && (n > 0 || len(sets) != 1):
		return fmt.Sprintf("it came %d times and is in %v", n, sets)
	case j.fate == unknown && n > 0 && len(sets) > 0:
		return fmt.Sprintf("it came %d times and is still in %v", n, sets)
	}
	return ""
}

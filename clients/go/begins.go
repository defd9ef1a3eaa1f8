package millrace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// begin is a record of the stream jobs.begins.
type begin struct {
	Type     string   `json:"type"`
	Process  string   `json:"process"`
	Identity string   `json:"identity,omitempty"`
	Queue    string   `json:"queue,omitempty"`
	Queues   []string `json:"queues,omitempty"`
	JID      string   `json:"jid,omitempty"`
	Body     string   `json:"body,omitempty"`
	Blames   *string  `json:"blames,omitempty"`
	At       float64  `json:"at"`
}

// Types of begin records.
const (
	typeOpened = "opened"
	typeBegun  = "begun"
	typeEnded  = "ended"
	typeDied   = "died"
	typeClosed = "closed"
)

// memory is how long a dead process, or a job that never ended, is remembered.
const memory = 72 * time.Hour

// key identifies a job. Two jobs with the same jid and different bytes are different jobs.
type key struct{ jid, body string }

func keyOf(j *RawJob) key {
	sum := sha256.Sum256(j.Raw)
	return key{j.JID, hex.EncodeToString(sum[:8])}
}

// process is a worker process, as the stream describes it.
type process struct {
	queue  string   // exclusive; vanishes with the connection of the process
	queues []string // queues that it consumes
	opened int      // the number of its latest record opened
	died   time.Time
	closed bool
	heard  time.Time
}

// suspect is a redelivered job that began.
type suspect struct {
	processes map[string]bool // in which it began, or may have begun
	heard     time.Time
}

// begins is the fold of the stream.
type begins struct {
	processes map[string]*process
	suspects  map[key]*suspect
	records   int
}

func newBegins() *begins {
	return &begins{processes: map[string]*process{}, suspects: map[key]*suspect{}}
}

// apply folds one record and returns it. It returns false if body is not a record.
func (b *begins) apply(body []byte) (begin, bool) {
	var r begin
	if json.Unmarshal(body, &r) != nil || r.Process == "" {
		return r, false
	}
	b.records++
	at := clock(r.At)
	switch r.Type {
	case typeOpened:
		b.processes[r.Process] = &process{queue: r.Queue, queues: r.Queues, opened: b.records, heard: at}
	case typeDied:
		if p := b.processes[r.Process]; p != nil && p.died.IsZero() {
			p.died, p.heard = at, at
		}
	case typeClosed:
		if p := b.processes[r.Process]; p != nil {
			p.closed, p.heard = true, at
		}
	case typeBegun:
		b.begun(r, at)
	case typeEnded:
		delete(b.suspects, key{r.JID, r.Body})
	}
	if b.records%1000 == 0 {
		b.forget(at.Add(-memory))
	}
	return r, true
}

func (b *begins) begun(r begin, at time.Time) {
	k := key{r.JID, r.Body}
	s := b.suspects[k]
	if s == nil {
		s = &suspect{processes: map[string]bool{}}
		b.suspects[k] = s
	}
	s.heard = at
	s.processes[r.Process] = true
	if r.Blames != nil && *r.Blames != "" {
		s.processes[*r.Blames] = true
	}
}

func (b *begins) forget(before time.Time) {
	for k, s := range b.suspects {
		if s.heard.Before(before) {
			delete(b.suspects, k)
		}
	}
	for id, p := range b.processes {
		if (p.closed || !p.died.IsZero()) && p.heard.Before(before) {
			delete(b.processes, id)
		}
	}
}

// dead reports whether a process is dead: the stream says so, or its exclusive queue is gone.
func (p *process) dead(gone map[string]bool) bool {
	return !p.closed && (!p.died.IsZero() || gone[p.queue])
}

// maybeDead returns the processes that matter for a job and may be dead. For each it returns the
// exclusive queue that shows whether the process is alive.
func (b *begins) maybeDead(k key, queue, self string) map[string]string {
	found := map[string]string{}
	for id, p := range b.processes {
		if id == self || p.closed || !p.died.IsZero() {
			continue
		}
		s := b.suspects[k]
		if s != nil && s.processes[id] || s == nil && slices.Contains(p.queues, queue) {
			found[id] = p.queue
		}
	}
	return found
}

// blame returns the process that probably began a job of which the stream has no record. Of the
// dead processes that consumed its queue while the job was there, it is the one that opened last.
func (b *begins) blame(k key, queue, self string, enqueuedAt time.Time, gone map[string]bool) string {
	if b.suspects[k] != nil {
		return ""
	}
	latest, name := 0, ""
	for id, p := range b.processes {
		if id == self || !p.dead(gone) || !slices.Contains(p.queues, queue) || p.opened < latest {
			continue
		}
		if !p.died.IsZero() && !enqueuedAt.IsZero() && p.died.Before(enqueuedAt) {
			continue
		}
		latest, name = p.opened, id
	}
	return name
}

// deaths counts the dead processes in which a job began.
func (b *begins) deaths(k key, self string, gone map[string]bool) int {
	n := 0
	if s := b.suspects[k]; s != nil {
		for id := range s.processes {
			if p := b.processes[id]; id != self && p != nil && p.dead(gone) {
				n++
			}
		}
	}
	return n
}

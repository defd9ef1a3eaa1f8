package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/wire"
)

// timeline is what is known of a job.
type timeline struct {
	JID       string            `json:"jid"`
	Entries   []json.RawMessage `json:"entries"` // pending now
	Running   []runningOn       `json:"running,omitempty"`
	Leases    []heldLease       `json:"leases,omitempty"`
	Events    []jobEvent        `json:"events"`         // what was done to it, the newest first
	Runs      []run             `json:"runs,omitempty"` // what workers reported of it, the newest first
	Job       json.RawMessage   `json:"job,omitempty"`  // as it was last sent to its queue, where no entry has it
	OlderThan bool              `json:"older_than_kept"`
}

// runningOn is a process that says that it runs the job.
type runningOn struct {
	Identity string  `json:"identity"`
	State    string  `json:"state"` // of the process
	HeardAt  float64 `json:"heard_at"`
	runningJob
}

// heldLease is a lease of a job, as its timeline shows it.
type heldLease struct {
	ID      string  `json:"id"`
	Until   float64 `json:"until"`
	Queue   string  `json:"queue"`
	Class   string  `json:"class"`
	Attempt int     `json:"attempt"`
}

// jobEvent is something that was done to a job.
type jobEvent struct {
	At        float64  `json:"at"`
	What      string   `json:"what"`
	Record    int64    `json:"record"` // the journal's, by its offset
	Set       string   `json:"set,omitempty"`
	Offset    *int64   `json:"offset,omitempty"` // of the entry in the stream of its set
	Actor     string   `json:"actor,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Operation string   `json:"operation,omitempty"`
	Identity  string   `json:"identity,omitempty"` // cancelled: of the process that was asked
	Changes   []change `json:"changes,omitempty"`  // changed: what
}

// change is a member of a job before and after somebody changed it, each as JSON text, byte for byte.
type change struct {
	Member string `json:"member"`
	Was    string `json:"was"`
	Is     string `json:"is"`
}

const (
	maxShownActs    = 200              // acts of one job
	maxActsSearched = 1 << 20          // more than are kept: the story is to be whole
	maxShownChanges = 10               // changes whose records are read
	maxStoryTime    = 2 * time.Second  // for reading them
	storyEvery      = time.Minute      // how long what was read serves
	producersAhead  = 15 * time.Minute // how far the clock of a producer may be ahead
)

// showJob shows where a job is, and what happened to it.
func (s *Server) showJob(c echo.Context) error {
	jid, err := problem.PathParam(c, "jid")
	if err != nil {
		return err
	}
	if err := problem.NoParams(c); err != nil {
		return err
	}
	t, err := s.timeline(c.Request().Context(), jid, s.hide.of(c))
	if err != nil {
		return err
	}
	if len(t.Entries)+len(t.Events)+len(t.Leases)+len(t.Runs)+len(t.Running) == 0 {
		return problem.New(http.StatusNotFound, "job not found: it may still be in its queue, or be older than the retention")
	}
	return writeJSON(c, http.StatusOK, t)
}

func (s *Server) timeline(ctx context.Context, jid string, hide *redactor) (t timeline, err error) {
	t = timeline{JID: jid, Entries: []json.RawMessage{}}
	large := fetches{hide: hide}
	var since time.Time // when the job was made, less what clocks may differ
	for _, set := range entrySets {
		all, err := s.cfg.Entries.Find(set.stream, jid)
		if err != nil {
			return t, err
		}
		for _, e := range all {
			item := inSet(large.item(ctx, s, e), set.path)
			if made := madeAt(item); len(t.Entries) == 0 || made.Before(since) {
				since = made
			}
			t.Entries = append(t.Entries, item)
		}
	}
	held, err := s.cfg.Entries.Leases(jid)
	if err != nil {
		return t, err
	}
	for _, e := range held {
		t.Leases = append(t.Leases, heldLease{e.JID, wire.Seconds(e.At), e.Queue, e.Class, e.Attempt + 1})
	}
	var olderRuns, olderEvents bool
	if t.Runs, olderRuns, err = s.runsOf(jid, since); err != nil {
		return t, err
	}
	if t.Running, err = s.runningNow(ctx, jid, t.Runs); err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxStoryTime)
	defer cancel()
	if t.Events, olderEvents, err = s.eventsOf(ctx, jid, since, hide); err != nil {
		return t, err
	}
	t.OlderThan = olderRuns || olderEvents
	if len(t.Entries) == 0 {
		t.Job = s.lastSent(ctx, t.Events, hide)
		if t.OlderThan {
			t.OlderThan, err = s.olderThanKept(&t)
		}
	}
	return t, err
}

// olderThanKept reports whether a job without an entry may have a longer history than is kept.
// The job that was last sent says when it was made. The journal has no events of a job that a
// client published to its queue: such a job has an earlier run if the oldest is not attempt 1.
func (s *Server) olderThanKept(t *timeline) (bool, error) {
	made := madeAt(t.Job)
	switch {
	case len(t.Events) == 0:
		return len(t.Runs) > 0 && t.Runs[len(t.Runs)-1].Attempt > 1, nil
	case made.IsZero() || len(t.Events) >= maxShownActs:
		return true, nil
	}
	if _, older, err := s.runsOf(t.JID, made); err != nil || older {
		return older, err
	}
	return s.cfg.Entries.ActsForgotten(wire.Seconds(made))
}

// madeAt returns when the job of an entry was made, as its producer says; zero if it does not.
func madeAt(item []byte) time.Time {
	job := gjson.ParseBytes(item)
	if inner := job.Get("job"); inner.IsObject() {
		job = inner
	}
	for _, name := range []string{"created_at", "enqueued_at"} {
		if at := job.Get(name).Float(); at > 0 && at < problem.Latest {
			return time.UnixMicro(int64(at * 1e6)).Add(-producersAhead)
		}
	}
	return time.Time{}
}

// eventsOf returns what was done to a job, the newest first. older says that there may have been more.
func (s *Server) eventsOf(ctx context.Context, jid string, since time.Time, hide *redactor) (events []jobEvent, older bool, err error) {
	q := tracker.ActQuery{JID: jid, Limit: maxShownActs, Most: maxActsSearched}
	if !since.IsZero() {
		q.From = wire.Seconds(since)
	}
	found, err := s.cfg.Entries.Acts(q)
	if err != nil {
		return nil, false, err
	}
	events = []jobEvent{}
	seen, shown := map[int64]bool{}, 0
	for i := range found.Acts {
		a := newAct(&found.Acts[i])
		seen[a.Record] = true
		e := jobEvent{At: a.At, What: a.Op, Record: a.Record, Set: a.Set, Offset: a.Offset, Actor: a.Actor, Reason: a.Reason, Operation: a.Operation, Identity: a.Identity}
		if a.Op == wire.TypeChanged && shown < maxShownChanges {
			shown++
			e.Changes = s.changesOf(ctx, a.Record).hidden(hide)
		}
		events = append(events, e)
	}
	// That a job was sent because it was due is in no list of acts.
	for _, set := range entrySets {
		h, err := s.cfg.Entries.Happened(set.stream, jid)
		if err != nil {
			return nil, false, err
		}
		if h != nil && !seen[h.Record] {
			events = append(events, jobEvent{At: h.At, What: h.What, Record: h.Record, Set: set.path, Offset: &h.Offset, Actor: h.Actor})
		}
	}
	slices.SortFunc(events, func(a, b jobEvent) int { return cmp.Compare(b.Record, a.Record) })
	for i := len(events) - 2; i >= 0; i-- { // the transport may not say when: just after what came before
		events[i].At = cmp.Or(events[i].At, events[i+1].At)
	}
	return events, found.Older || found.Next > 0, nil
}

// changes are those of one record.
type changes []change

// hidden is what somebody may see of changes.
func (all changes) hidden(h *redactor) (shown []change) {
	for _, c := range all {
		was, _ := h.record([]byte(c.Was))
		is, _ := h.record([]byte(c.Is))
		shown = append(shown, change{c.Member, string(was), string(is)})
	}
	return shown
}

// changesOf returns what a record of the journal says was changed; none where it or the changed entry cannot be read.
func (s *Server) changesOf(ctx context.Context, record int64) changes {
	found, _ := s.shared.get(ctx, fmt.Sprint("changes of ", record), storyEvery, func(context.Context) (any, error) {
		r, err := s.cfg.Fetch(ctx, wire.Journal, record)
		if err != nil {
			return changes(nil), nil
		}
		j, err := wire.ParseJournal(r.Body)
		if err != nil || j.Type != wire.TypeChanged || j.By == nil || len(j.Entry) > maxKept {
			return changes(nil), nil
		}
		by, err := s.cfg.Fetch(ctx, j.Stream, *j.By)
		if err != nil || len(by.Body) > maxKept {
			return changes(nil), nil
		}
		return changesBetween(j.Stream, j.Offset, j.Entry, *j.By, by.Body), nil
	})
	all, _ := found.(changes)
	return all
}

// maxKept is the largest record of which changes and arguments are shown once it has left its set, in bytes.
const maxKept = 64 << 10

// changesBetween compares an entry with the one that stands for it.
func changesBetween(stream string, offset int64, before []byte, by int64, after []byte) (all changes) {
	was, err := wire.ParseEntry(stream, offset, before)
	if err != nil {
		return nil
	}
	is, err := wire.ParseEntry(stream, by, after)
	if err != nil {
		return nil
	}
	add := func(member, was, is string) {
		if was != is {
			all = append(all, change{member, was, is})
		}
	}
	add("args", argsIn(before), argsIn(after))
	add("queue", string(quote(was.Job.Queue)), string(quote(is.Job.Queue)))
	add("priority", strconv.Itoa(int(was.Job.Priority)), strconv.Itoa(int(is.Job.Priority)))
	if stream != wire.DeadJobs && stream != wire.Gated {
		add("at", strconv.FormatFloat(wire.Seconds(was.At), 'f', -1, 64), strconv.FormatFloat(wire.Seconds(is.At), 'f', -1, 64))
	}
	return all
}

// argsIn returns the arguments in a record, as they stand there.
func argsIn(record []byte) string {
	job := gjson.ParseBytes(record)
	if inner := job.Get("job"); inner.IsObject() {
		job = inner
	}
	return cmp.Or(job.Get("args").Raw, "null")
}

// lastSent returns the job as it was sent to its queue last, where the journal still has it.
func (s *Server) lastSent(ctx context.Context, events []jobEvent, hide *redactor) json.RawMessage {
	i := slices.IndexFunc(events, func(e jobEvent) bool { return reachedQueue[e.What] })
	if i < 0 {
		return nil
	}
	found, _ := s.shared.get(ctx, fmt.Sprint("job of ", events[i].Record), storyEvery, func(context.Context) (any, error) {
		r, err := s.cfg.Fetch(ctx, wire.Journal, events[i].Record)
		if err != nil || len(r.Body) > maxKept {
			return json.RawMessage(nil), nil
		}
		if d, is := wire.DeedOf(r.Headers); !is || d.Burial() || !json.Valid(r.Body) || !bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("{")) {
			return json.RawMessage(nil), nil
		}
		return json.RawMessage(r.Body), nil
	})
	job, _ := found.(json.RawMessage)
	if job == nil {
		return nil
	}
	shown, _ := hide.record(job)
	return shown
}

// runsOf returns the newest runs of a job. older says that there may have been more.
func (s *Server) runsOf(jid string, since time.Time) (runs []run, older bool, err error) {
	if s.cfg.Metrics == nil {
		return nil, false, nil
	}
	found, err := s.runs(metrics.RunQuery{JID: jid, From: since, Limit: maxShownRuns, Most: int(s.maxSearched)})
	for i := range found.Runs {
		runs = append(runs, newRun(&found.Runs[i]))
	}
	return runs, found.Older || found.Next != nil, err
}

// maxShownRuns is how many runs a job's timeline shows.
const maxShownRuns = 100

// runningNow returns the processes that say that they run a job. They say so every few seconds: what one said before the run ended is over.
func (s *Server) runningNow(ctx context.Context, jid string, runs []run) (all []runningOn, err error) {
	usual, err := s.usual(ctx)
	if err != nil {
		return nil, err
	}
	ended := 0.0
	for i := range runs {
		ended = max(ended, runs[i].At)
	}
	workers := s.processes()
	for i := range workers {
		p := &workers[i]
		for j := range p.Work {
			if p.Work[j].JID != jid {
				continue
			}
			w := newRunning(p, &p.Work[j], usual)
			began := wire.Seconds(p.Heard)
			if w.StartedAt != nil {
				began = *w.StartedAt
			}
			if ended <= began {
				all = append(all, runningOn{p.Identity, p.State, wire.Seconds(p.Heard), w})
			}
		}
	}
	return all, nil
}

// newRunning is a job that a process runs, as clients see it.
func newRunning(p *processes.Process, w *wire.Work, usual map[string]time.Duration) runningJob {
	job := runningJob{JID: w.JID, Class: w.Class, Queue: wire.QueueName(w.Queue), StartedAt: secondsIf(w.StartedAt)}
	if u, known := usual[w.Class]; known {
		ms := millis(u)
		job.Usual, job.Stuck = &ms, attention.Stuck(p.Age(w), u)
	}
	return job
}

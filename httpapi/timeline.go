package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxShownRuns      = 100              // of one job
	maxShownEvents    = 200              // of one job
	maxEventsSearched = 1 << 20          // more than are kept: the timeline must be complete
	maxShownChanges   = 10               // changes whose records are read
	maxReadTime       = 2 * time.Second  // for reading them
	keepRead          = time.Minute      // how long what was read is kept
	producersAhead    = 15 * time.Minute // how far the clock of a producer may be ahead
	maxKept           = 64 << 10         // bytes of a record that is read after it has left its set
)

// show shows where a job is, and what happened to it.
func (a *jobsAPI) show(in *problem.Request) error {
	jid := in.PathParam("jid")
	in.Query()
	if in.Err() != nil {
		return in.Err()
	}
	t, err := a.timeline(in.Request().Context(), jid, a.hide.of(in))
	if err != nil {
		return err
	}
	if len(t.Entries)+len(t.Events)+len(t.Leases)+len(t.Runs)+len(t.Running) == 0 {
		return problem.New(http.StatusNotFound, "job not found: it may still be in its queue, or be older than the retention")
	}
	return writeJSON(in, t)
}

func (a *jobsAPI) timeline(ctx context.Context, jid string, hide *redactor) (t answer.Timeline, err error) {
	t = answer.Timeline{JID: jid, Entries: []json.RawMessage{}}
	items := listItems{records: a.records, hide: hide}
	var since time.Time // when the job was made, less what clocks may differ
	for _, set := range entrySets {
		all, err := a.entries.Find(set.stream, jid)
		if err != nil {
			return t, err
		}
		for _, e := range all {
			item := annotate(items.item(ctx, e), "set", set.path)
			if made := madeAt(item); len(t.Entries) == 0 || made.Before(since) {
				since = made
			}
			t.Entries = append(t.Entries, item)
		}
	}
	leases, err := a.entries.Leases(jid)
	if err != nil {
		return t, err
	}
	for _, e := range leases {
		t.Leases = append(t.Leases, answer.JobLease{ID: e.JID, Until: wire.Seconds(e.At), Queue: e.Queue, Class: e.Class, Attempt: e.Attempt + 1})
	}
	var olderRuns, olderEvents bool
	if t.Runs, olderRuns, err = a.runsOf(jid, since); err != nil {
		return t, err
	}
	if t.Running, err = a.runningNow(ctx, jid, t.Runs); err != nil {
		return t, err
	}
	// Other requests wait for the same records: a client that leaves does not end their reading.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxReadTime)
	defer cancel()
	if t.Events, olderEvents, err = a.eventsOf(ctx, jid, since, hide); err != nil {
		return t, err
	}
	t.OlderThan = olderRuns || olderEvents
	if len(t.Entries) == 0 {
		t.Job = a.lastSent(ctx, t.Events, hide)
		if t.OlderThan {
			t.OlderThan, err = a.olderThanKept(&t)
		}
	}
	return t, err
}

// olderThanKept reports whether a job without an entry may have a longer history than is kept.
// The job that was last sent says when it was made. The journal has no events of a job that a
// client published to its queue: such a job has an earlier run if the oldest is not attempt 1.
func (a *jobsAPI) olderThanKept(t *answer.Timeline) (bool, error) {
	made := madeAt(t.Job)
	switch {
	case len(t.Events) == 0:
		return len(t.Runs) > 0 && t.Runs[len(t.Runs)-1].Attempt > 1, nil
	case made.IsZero() || len(t.Events) >= maxShownEvents:
		return true, nil
	}
	if _, older, err := a.runsOf(t.JID, made); err != nil || older {
		return older, err
	}
	return a.entries.Audit.Incomplete(wire.Seconds(made))
}

func jobIn(record []byte) gjson.Result {
	job := gjson.ParseBytes(record)
	if inner := job.Get("job"); inner.IsObject() {
		return inner
	}
	return job
}

// madeAt returns when a job was made, by its producer's clock; zero if the job does not say.
func madeAt(item []byte) time.Time {
	job := jobIn(item)
	for _, name := range []string{"created_at", "enqueued_at"} {
		if at := job.Get(name).Float(); at > 0 && at < problem.Latest {
			return time.UnixMicro(int64(at * 1e6)).Add(-producersAhead)
		}
	}
	return time.Time{}
}

// eventsOf returns what was done to a job, the newest first. older reports that more may have been.
func (a *jobsAPI) eventsOf(ctx context.Context, jid string, since time.Time, hide *redactor) (events []answer.JobEvent, older bool, err error) {
	found, err := a.entries.Audit.Search(audit.Query{JID: jid, Limit: maxShownEvents, Most: maxEventsSearched, From: secondsOrZero(since)})
	if err != nil {
		return nil, false, err
	}
	events = []answer.JobEvent{}
	seen, shown := map[int64]bool{}, 0
	for i := range found.Entries {
		e := newJournalEntry(&found.Entries[i])
		seen[e.Record] = true
		event := answer.JobEvent{At: e.At, What: e.Op, Record: e.Record, Set: e.Set, Offset: e.Offset, Actor: e.Actor, Reason: e.Reason, Operation: e.Operation, Identity: e.Identity}
		if e.Op == wire.TypeChanged && shown < maxShownChanges {
			shown++
			event.Changes = a.changesOf(ctx, e.Record, hide)
		}
		events = append(events, event)
	}
	// That a job fired because it was due is not in the audit log.
	for _, set := range entrySets {
		h, err := a.entries.LastOutcome(set.stream, jid)
		if err != nil {
			return nil, false, err
		}
		if h != nil && !seen[h.Record] {
			events = append(events, answer.JobEvent{At: h.At, What: h.What, Record: h.Record, Set: set.path, Offset: &h.Offset, Actor: h.Actor, Other: h.Other})
		}
	}
	slices.SortFunc(events, func(a, b answer.JobEvent) int { return cmp.Compare(b.Record, a.Record) })
	for i := len(events) - 2; i >= 0; i-- { // the transport may know no time
		events[i].At = cmp.Or(events[i].At, events[i+1].At)
	}
	return events, found.Older || found.Next > 0, nil
}

// changesOf returns what a record of the journal changed, if it and the changed entry can be read.
func (a *jobsAPI) changesOf(ctx context.Context, record int64, hide *redactor) (shown []answer.JobChange) {
	found, _ := a.answers.get(ctx, fmt.Sprint("changes of ", record), keepRead, func(context.Context) (any, error) {
		r, err := a.keptRecord(ctx, wire.Journal, record)
		if err != nil {
			return nil, err
		}
		j, err := wire.ParseJournal(r.Body)
		if err != nil || j.Type != wire.TypeChanged || j.By == nil || len(j.Entry) > maxKept {
			return []answer.JobChange(nil), nil
		}
		by, err := a.keptRecord(ctx, j.Stream, *j.By)
		if err != nil {
			return nil, err
		}
		if len(by.Body) > maxKept {
			return []answer.JobChange(nil), nil
		}
		return changesBetween(j.Stream, j.Offset, j.Entry, *j.By, by.Body), nil
	})
	all, _ := found.([]answer.JobChange)
	for _, c := range all {
		was, _ := hide.record([]byte(c.Was))
		is, _ := hide.record([]byte(c.Is))
		shown = append(shown, answer.JobChange{Member: c.Member, Was: string(was), Is: string(is)})
	}
	return shown
}

// keptRecord reads a record, which is empty if its stream does not have it any more. Another error
// may pass, so that what depends on it is not kept for later requests.
func (a *jobsAPI) keptRecord(ctx context.Context, stream string, offset int64) (wire.Record, error) {
	r, err := a.records.fetch(ctx, stream, offset)
	if errors.Is(err, streams.ErrNotFound) {
		return wire.Record{}, nil
	}
	return r, err
}

// changesBetween compares an entry with the one that replaced it.
func changesBetween(stream string, offset int64, before []byte, by int64, after []byte) (all []answer.JobChange) {
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
			all = append(all, answer.JobChange{Member: member, Was: was, Is: is})
		}
	}
	add("args", cmp.Or(jobIn(before).Get("args").Raw, "null"), cmp.Or(jobIn(after).Get("args").Raw, "null"))
	add("queue", quote(was.Job.Queue), quote(is.Job.Queue))
	add("priority", strconv.Itoa(int(was.Job.Priority)), strconv.Itoa(int(is.Job.Priority)))
	if stream != wire.DeadJobs && stream != wire.Gated {
		add("at", secondsText(wire.Seconds(was.At)), secondsText(wire.Seconds(is.At)))
	}
	return all
}

// lastSent returns the job as it was last sent to its queue, where the journal still has it.
func (a *jobsAPI) lastSent(ctx context.Context, events []answer.JobEvent, hide *redactor) json.RawMessage {
	i := slices.IndexFunc(events, func(e answer.JobEvent) bool { return reachedQueue[e.What] })
	if i < 0 {
		return nil
	}
	found, _ := a.answers.get(ctx, fmt.Sprint("job of ", events[i].Record), keepRead, func(context.Context) (any, error) {
		r, err := a.keptRecord(ctx, wire.Journal, events[i].Record)
		if err != nil {
			return nil, err
		}
		if d, is := wire.DispatchOf(r.Headers); !is || len(r.Body) > maxKept || d.Burial() || !json.Valid(r.Body) || !bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("{")) {
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

// runsOf returns the newest runs of a job. older reports that more may have been.
func (a *jobsAPI) runsOf(jid string, since time.Time) (runs []answer.Run, older bool, err error) {
	if a.runs.metrics == nil {
		return nil, false, nil
	}
	found, err := a.runs.find(metrics.RunQuery{JID: jid, From: since, Limit: maxShownRuns})
	for i := range found.Runs {
		runs = append(runs, newRun(&found.Runs[i]))
	}
	return runs, found.Older || found.Next != nil, err
}

// runningNow returns the processes that run a job: not those whose heartbeat is older than its end.
func (a *jobsAPI) runningNow(ctx context.Context, jid string, runs []answer.Run) (all []answer.RunningOn, err error) {
	usual, err := a.workers.usual(ctx)
	if err != nil {
		return nil, err
	}
	ended := 0.0
	for i := range runs {
		ended = max(ended, runs[i].At)
	}
	workers := a.workers.list()
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
				all = append(all, newRunningOn(p, w))
			}
		}
	}
	return all, nil
}

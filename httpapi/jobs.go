package httpapi

import (
	"net/http"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/wire"
)

// jobsAPI shows, deletes and cancels a job, wherever it is.
type jobsAPI struct {
	entries  *tracker.Reader
	records  *records
	runs     *runsAPI
	workers  *workers
	answers  *answerCache
	leader   *leader
	controls *controls
	hide     *redactor
}

// delete deletes a job that is not in its queue yet, in any set.
func (a *jobsAPI) delete(in *problem.Request) error {
	jid := in.PathParam("jid")
	in.Query()
	reason := readReason(in)
	if in.Err() != nil {
		return in.Err()
	}
	found, err := a.waiting(jid)
	if err != nil {
		return err
	}
	switch len(found) {
	case 0:
		return a.notWaiting(jid)
	case 1:
		return a.leader.do(in, wire.Command{Command: wire.CommandDelete, Stream: found[0].Stream, JID: jid, Offset: &found[0].Offset, Reason: reason})
	}
	return problem.New(http.StatusConflict, "%d entries have this jid: delete one of them in its set, with ?offset=", len(found))
}

func (a *jobsAPI) waiting(jid string) (all []*tracker.Stored, err error) {
	for _, set := range entrySets {
		found, err := a.entries.Find(set.stream, jid)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// notWaiting says why a job cannot be deleted: it is in its queue already, or was never seen.
func (a *jobsAPI) notWaiting(jid string) error {
	if err := a.notLeased(jid, "the job is leased: a worker holds it over HTTP"); err != nil {
		return err
	}
	var last *wire.Happened
	for _, set := range entrySets {
		h, err := a.entries.LastOutcome(set.stream, jid)
		if err != nil {
			return err
		}
		if h != nil && (last == nil || h.At > last.At) {
			last = h
		}
	}
	if last == nil {
		return problem.New(http.StatusNotFound, "no entry has this jid now")
	}
	status, reason := http.StatusNotFound, "no entry has this jid now: "
	if reachedQueue[last.What] {
		status, reason = http.StatusConflict, "the job is in its queue already, or has run: "
	}
	p := problem.New(status, "%s%s", reason, describe(last))
	p.Happened = last
	return p
}

// notLeased returns an error if the job is leased.
func (a *jobsAPI) notLeased(jid, reason string) error {
	leases, err := a.entries.Leases(jid)
	if err == nil && len(leases) > 0 {
		return problem.New(http.StatusConflict, "%s", reason)
	}
	return err
}

// reachedQueue are the outcomes after which a job is in its queue. OpEnqueued is none: its record
// has only the key, and the journal may have it before or after the fire.
var reachedQueue = map[string]bool{
	wire.OpFired: true, wire.OpTriggered: true, wire.OpRetried: true, wire.OpRefired: true,
}

// cancel asks the process that runs a job to cancel it.
func (a *jobsAPI) cancel(in *problem.Request) error {
	jid := in.PathParam("jid")
	in.Query()
	reason := checkReason(in, readReason(in))
	if in.Err() != nil {
		return in.Err()
	}
	identity, err := a.runsOn(jid)
	if err != nil {
		return err
	}
	id, err := a.controls.send(in, wire.Controls{Op: wire.ControlCancel, Identity: identity, JID: jid}, reason)
	if err != nil {
		return err
	}
	return in.JSON(http.StatusAccepted, answer.Asked{ID: id, Identity: identity})
}

// runsOn returns the process that runs a job. It returns everyProcess if several report the job, or
// if none does and one has more jobs than it lists.
func (a *jobsAPI) runsOn(jid string) (identity string, err error) {
	unlisted := false
	workers := a.workers.list()
	for i := range workers {
		p := &workers[i]
		if p.State == processes.Lost {
			continue
		}
		unlisted = unlisted || p.Busy > int64(len(p.Work))
		for j := range p.Work {
			if p.Work[j].JID == jid && identity != p.Identity {
				if identity != "" {
					return everyProcess, nil
				}
				identity = p.Identity
			}
		}
	}
	switch {
	case identity != "":
		return identity, nil
	case unlisted:
		return everyProcess, nil
	}
	return "", a.notRunning(jid)
}

// notRunning says why a job cannot be cancelled.
func (a *jobsAPI) notRunning(jid string) error {
	if err := a.notLeased(jid, "the job is leased over HTTP: only its holder can end it"); err != nil {
		return err
	}
	found, err := a.waiting(jid)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return problem.New(http.StatusConflict, "the job does not run: it waits in %s, delete it there", setOf(found[0].Stream))
	}
	return problem.New(http.StatusNotFound, "no worker process says that it runs this job: one that has just begun is listed with the next heartbeat, within 10 seconds")
}

package main

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

const jobsPath = "/api/jobs"

type jobsCmd struct {
	pastSettings

	Queue  string `placeholder:"QUEUE" help:"Only this queue's."`
	Class  string `placeholder:"CLASS" help:"Only jobs of this class."`
	JID    string `name:"jid" placeholder:"JID" help:"Only this job."`
	Error  string `placeholder:"CLASS" help:"Only what failed with an error of this class. A fingerprint finds none: workers report no messages."`
	Worker string `placeholder:"PROCESS" help:"Only what this worker process ran: host:pid:tag."`
	Status string `placeholder:"STATUS" enum:",success,failed,dead,discarded,expired" default:"" help:"Only these: success, failed, dead, discarded or expired."`
	Failed bool   `help:"Only what failed, for now or for good."`
}

// runRow is an attempt, as the API gives it.
type runRow struct {
	At       float64  `json:"at"`
	JID      string   `json:"jid"`
	Class    string   `json:"class"`
	Queue    string   `json:"queue"`
	Status   string   `json:"status"`
	Duration *float64 `json:"duration_ms"`
	Attempt  int64    `json:"attempt"`
	Worker   string   `json:"worker"`
	Error    string   `json:"error_class"`
}

func (r *runRow) cells() []string {
	return []string{moment(r.At).Format(time.DateTime), r.JID, r.Class, r.Queue, r.Status, r.took(), strconv.FormatInt(r.Attempt, 10),
		short(r.Error), cmp.Or(r.Worker, "-")}
}

func (r *runRow) took() string {
	if r.Duration == nil {
		return ""
	}
	return inMillis(*r.Duration)
}

var errFingerprint = errors.New("--error: a fingerprint stands for a class and message of errors, and workers report no message: name an error class")

// Run lists what ran lately.
func (c *jobsCmd) Run(ctx context.Context, out output) error {
	if wire.IsFingerprint(c.Error) {
		return errFingerprint
	}
	chosen := map[string]string{"queue": c.Queue, "class": c.Class, "jid": c.JID, "error": c.Error, "worker": c.Worker, "status": c.Status}
	if c.Failed {
		chosen["failed"] = "true"
	}
	titles := []string{"ENDED", "JID", "CLASS", "QUEUE", "STATUS", "TOOK", "ATTEMPT", "ERROR", "WORKER"}
	return listPast(ctx, out, &c.pastSettings, jobsPath, chosen, titles, (*runRow).cells)
}

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type uniqueCmd struct {
	List listKeysCmd `cmd:"" default:"withargs" aliases:"ls" help:"List the keys that unique jobs have."`
	Show showKeyCmd  `cmd:"" aliases:"get" help:"Show which job has a key."`
	Free freeKeyCmd  `cmd:"" help:"Free a key that is taken for a time although its job has ended."`
}

const keysPath = "/api/unique-keys"

var keyRows = rows[answer.UniqueKey]{[]output.Column{output.Name("KEY"), output.ID("JID"), output.State("STATE"), output.Time("SINCE"), output.Time("UNTIL"), output.ID("HASH")},
	func(k *answer.UniqueKey) []any {
		return []any{orDash(k.Key), k.JID, k.State, timeOrDash(k.Since), timeOrDash(k.Until), k.Hash}
	}}

func timeOrDash(seconds float64) any {
	if seconds == 0 {
		return "-"
	}
	return humantime.Unix(seconds)
}

type listKeysCmd struct {
	apiFlags

	Key string `placeholder:"KEY" help:"Only this key."`
	JID string `name:"jid" placeholder:"JID" help:"Only keys of this job."`
}

// Run lists keys.
func (c *listKeysCmd) Run(ctx context.Context, out output.Streams) error {
	query := url.Values{}
	for name, value := range map[string]string{"key": c.Key, "jid": c.JID} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return keyRows.getAll(ctx, out, &c.apiFlags, keysPath, query)
}

type showKeyCmd struct {
	apiFlags

	Hash string `arg:"" help:"Hash of the key, as millrace unique prints it."`
}

// Run lists what holds one key.
func (c *showKeyCmd) Run(ctx context.Context, out output.Streams) error {
	return keyRows.getAll(ctx, out, &c.apiFlags, keysPath, url.Values{"hash": {c.Hash}})
}

type freeKeyCmd struct {
	apiFlags
	reasonFlag
	output.Confirm

	Hash string `arg:"" help:"Hash of the key, as millrace unique prints it."`
}

// Run frees the key.
func (c *freeKeyCmd) Run(ctx context.Context, out output.Streams) error {
	if err := c.Ask(out, "Free key %s? A job with this key can be enqueued again.", c.Hash); err != nil {
		return err
	}
	return c.act(ctx, out, action{Request: apiclient.Request{Method: http.MethodDelete, Path: keysPath + "/" + apiclient.Segment(c.Hash), Body: c.body()},
		did: fields{"hash": c.Hash, "done": "freed"}, said: fmt.Sprintf("key %s freed", c.Hash)})
}

// uniqueFlags make a job unique.
type uniqueFlags struct {
	Unique        bool     `help:"Let there be no other job with the same class, queue and args."`
	UniqueKey     string   `placeholder:"KEY" help:"Let there be no other job with this key."`
	UniqueBy      []string `placeholder:"PART" help:"Let there be no other job with the same part: class, queue, args, jid, or a path like args.0.customer; may be given several times."`
	UniqueWaiting bool     `help:"Free the key when the job is delivered, and not when it has ended."`
	UniqueFor     string   `placeholder:"DURATION" help:"Take the key for so long: 90s, 15m, 2h30m, 3d."`
	UniqueReplace bool     `help:"Replace a job with the key that waits."`
	UniqueWait    string   `placeholder:"DURATION" help:"Put the job off for so long, each time that a job with its key comes."`
	UniqueMax     string   `placeholder:"DURATION" help:"Put the job off for so long at most."`
	NoWait        bool     `help:"Do not wait until a leader has decided which unique job stays."`
}

// replyTo returns where the leader says which job stays, or "" if the command does not wait for
// that.
func (f *uniqueFlags) replyTo(j *job) string {
	if j.Gate == nil || j.Gate.Unique == nil || f.NoWait {
		return ""
	}
	return broker.DirectReply
}

// decided waits for the decision about a unique job that is published, and prints the jid of the
// job that stays.
func (c *producer) decided(ctx context.Context, out output.Streams, j *job, answers <-chan wire.Delivery) error {
	var reply wire.Reply
	select {
	case d, open := <-answers:
		if !open {
			return undecided(j, "the connection to the broker ended before a leader had decided")
		}
		if err := json.Unmarshal(d.Body, &reply); err != nil {
			return undecided(j, "the answer of the leader is no JSON")
		}
	case <-ctx.Done():
		return undecided(j, "no leader has decided in time")
	}
	p := c.Printer(out)
	switch reply.Status {
	case wire.StatusCreated:
		return p.Done(fields{"jid": j.JID, "class": j.Class, "queue": j.Queue}, "%s", j.JID)
	case wire.StatusOK:
		if p.ForPeople() {
			_, _ = fmt.Fprintf(out.Err, "duplicate: job %s has the key, and the new job does not run\n", reply.DuplicateOf)
		}
		return p.Done(fields{"jid": reply.DuplicateOf, "class": j.Class, "queue": j.Queue, "duplicate_of": reply.DuplicateOf}, "%s", reply.DuplicateOf)
	}
	return fmt.Errorf("the leader refused the job: %s", reply.Reason)
}

// undecided returns the error for a unique job that is published, and whose decision is not known.
func undecided(j *job, why string) error {
	return fmt.Errorf("%s whether job %s is a duplicate; the job is published and will be decided: do not enqueue it again, and run millrace job %s later",
		why, j.JID, j.JID)
}

// unique returns what the flags say, nil if no flag does.
func (f *uniqueFlags) unique() (*unique, error) {
	u := &unique{Key: f.UniqueKey, By: f.UniqueBy}
	given := f.Unique || f.UniqueKey != "" || len(f.UniqueBy) > 0 || f.UniqueWaiting || f.UniqueReplace
	if f.UniqueWaiting {
		u.While = "waiting"
	}
	if f.UniqueReplace {
		u.On = "replace"
	}
	for _, d := range []struct {
		flag, text string
		to         *float64
	}{{"--unique-for", f.UniqueFor, &u.For}, {"--unique-wait", f.UniqueWait, &u.Wait}, {"--unique-max", f.UniqueMax, &u.Max}} {
		if d.text == "" {
			continue
		}
		given = true
		took, err := humantime.ParseDuration(d.text)
		if err != nil {
			return nil, named(d.flag, err)
		}
		*d.to = took.Seconds()
	}
	if !given {
		return nil, nil
	}
	return u, nil
}

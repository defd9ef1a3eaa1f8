package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/wire"
)

// tryLimit bounds how long permissions are tried: a broker that takes no messages answers no publish.
const tryLimit = 5 * time.Second

// alarms looks for what makes the broker refuse messages.
func (e *examination) alarms(ctx context.Context) error {
	alarms, err := e.mgmt.Alarms(ctx)
	if err != nil {
		return err
	}
	for _, alarm := range alarms {
		e.note(broken, "alarm", alarm+": the broker takes no messages, nothing fires", "free memory or disk on the broker, or raise its limits")
	}
	return nil
}

// rights tries what Millrace's user may.
func (e *examination) rights(ctx context.Context) {
	const subject = "permissions"
	trying, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	lacks, err := e.conn.Lacks(trying, needed)
	switch {
	case err != nil:
		e.note(advice, subject, err.Error(), "")
	case len(lacks) > 0:
		e.note(broken, subject, fmt.Sprintf("user %s may not %s", e.conn.User(), strings.Join(lacks, ", ")),
			sidecarRole.grant(e.conn.Features(), e.conn.VHost(), e.conn.User()))
	default:
		e.note(fine, subject, "user "+e.conn.User()+" may do all that a sidecar does", "")
	}
}

// lockers looks for others who may take the leader's lock.
func (e *examination) lockers(ctx context.Context) error {
	all, err := e.mgmt.Permissions(ctx)
	if broker.Unauthorized(err) {
		e.note(advice, "permissions", "only an administrator may list those of others (millrace doctor --permissions lists what each needs)", "")
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.User != e.conn.User() && mayLock(p) {
			e.note(advice, "permissions", fmt.Sprintf("user %s may declare %s; if it does, no sidecar can lead", p.User, wire.LeaderInbox),
				"take configure on jobs.* from clients (millrace doctor --permissions lists what each needs)")
		}
	}
	return nil
}

// policies sets what is missing, as every sidecar does, and looks for those that win over ours.
func (e *examination) policies(ctx context.Context) error {
	findings, err := e.mgmt.Policies(ctx)
	if broker.Unauthorized(err) {
		e.note(broken, "policies", "user "+e.conn.User()+" may not set them: jobs that workers reject, and jobs for queues that do not exist yet, "+
			"may be lost", "give the user the tag policymaker, or set them by hand:\n"+
			strings.Join(broker.PolicyCommands(e.conn.Features(), e.conn.VHost()), "\n"))
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range findings {
		e.note(broken, f.Subject, f.Problem, f.Remedy)
	}
	if len(findings) == 0 {
		e.note(fine, "policies", "Millrace's policies are set, and none wins over them", "")
	}
	return nil
}

// queues looks for job queues that lack something, and for jobs that wait where none should.
func (e *examination) queues(ctx context.Context) error {
	queues, err := e.mgmt.Queues(ctx)
	if err != nil {
		return err
	}
	for i := range queues {
		q := &queues[i]
		switch {
		case strings.HasPrefix(q.Name, wire.QueuePrefix):
			e.jobQueue(q)
		case q.Name == wire.Unrouted && q.Ready > 0:
			e.note(advice, q.Name, "left by an older version: "+wire.Counted(q.Ready, "job"), "start a sidecar: it moves them to "+wire.Gated)
		}
	}
	return nil
}

func (e *examination) jobQueue(q *broker.QueueInfo) {
	if _, has := q.Arguments["x-max-priority"]; !has && (q.Type != string(broker.QueueQuorum) || !e.conn.Features().QuorumPriorities) {
		e.note(advice, q.Name, "has no priorities: it was declared without x-max-priority", "if priorities matter, delete it while it is empty: Millrace makes it again")
	}
	if q.DeadLetterTo != "" && q.DeadLetterTo != wire.ExchangeDead {
		e.note(advice, q.Name, "what workers reject goes to "+q.DeadLetterTo+", not among the dead jobs", "declare it without x-dead-letter-exchange")
	}
	drops := q.MaxLength > 0 || q.MaxLengthBytes > 0
	if drops && !q.MayRefuse() {
		e.note(advice, q.Name, "has a length limit beyond which it drops its oldest jobs", "set overflow to reject-publish: Millrace then waits until there is room")
	}
}

// sharing looks for clients that use Millrace's user: they could write its journal.
func (e *examination) sharing(ctx context.Context) error {
	connections, err := e.mgmt.ConnectionsOf(ctx, e.conn.User())
	if err != nil {
		return err
	}
	var others []string
	for _, c := range connections {
		if !strings.HasPrefix(c.Given, connectionName) {
			others = append(others, strings.TrimSpace(c.Given+" ("+c.Name+")"))
		}
	}
	if len(others) == 0 {
		e.note(fine, "user", "no client shares the user "+e.conn.User(), "")
		return nil
	}
	e.note(advice, "user", fmt.Sprintf("%s beside Millrace as %s, and so could write what only Millrace may: %s",
		wire.Counted(int64(len(others)), "connection"), e.conn.User(), strings.Join(others[:min(len(others), 5)], ", ")), "give Millrace a user of its own")
	return nil
}

// clock compares this machine's clock with the broker's: producers, broker and sidecar should agree on when a job is due.
func (e *examination) clock(ctx context.Context) error {
	before := time.Now()
	theirs, ok, err := e.mgmt.Clock(ctx)
	if err != nil {
		return err
	}
	after := time.Now()
	if !ok {
		e.note(advice, "clocks", "the broker does not tell its time", "")
		return nil
	}
	switch skew := skewOf(before, after, theirs); {
	case skew > humantime.MaxSkew || skew < -humantime.MaxSkew:
		e.note(broken, "clocks", fmt.Sprintf("the broker's clock and this machine's are %s apart", skew.Abs().Round(time.Second)),
			"run NTP on every machine: a job is due by the sidecar's clock, at the time that its producer's gave")
	default:
		e.note(fine, "clocks", "the broker's and this machine's agree", "")
	}
	return nil
}

// skewOf is how far a clock that showed whole seconds between two instants is ahead of ours, as far as that can be known.
func skewOf(before, after, theirs time.Time) time.Duration {
	if ahead := theirs.Sub(after); ahead > 0 {
		return ahead
	}
	if behind := theirs.Add(time.Second).Sub(before); behind < 0 {
		return behind
	}
	return 0
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/wire"
)

func (e *examination) openBroker(ctx context.Context) error {
	conn, err := broker.Dial(ctx, e.cfg.Broker.Config("doctor"))
	if err != nil {
		e.report(failure, err.Error(), unreachableRemedy(err))
		return nil
	}
	e.conn = conn
	e.report(ok, fmt.Sprintf("%s %s at %s, virtual host %s, as user %s",
		conn.Product(), conn.Version(), broker.MaskURL(e.cfg.Broker.AMQPURL), conn.VHost(), conn.User()), "")
	return nil
}

// unreachableRemedy says what to do about a broker that cannot be reached.
func unreachableRemedy(err error) string {
	if refusal := broker.Refusal(err); refusal != nil {
		return connect.RefusedRemedy(refusal)
	}
	text := err.Error()
	if strings.Contains(text, "refused") || strings.Contains(text, "no such host") || errors.Is(err, context.DeadlineExceeded) {
		return "start the broker, or say where it is with --amqp-url; a firewall may be in between"
	}
	return "check --amqp-url, and the broker's log"
}

func (e *examination) openManagement(ctx context.Context) error {
	mgmt, err := e.cfg.Broker.OpenManagement(ctx)
	other := connect.OtherBroker(err)
	features := e.conn.Features()
	byHand := "or set the policies by hand:\n" + e.policyCommands()
	switch {
	case err == nil:
		e.mgmt = mgmt
		e.report(ok, "answers, and is this broker's", "")
	case other != nil && e.cfg.Broker.ManagementURL != "":
		e.report(failure, other.Error()+": millrace serve exits at startup", connect.OtherBrokerRemedy(other))
	case other != nil:
		e.report(note, other.Error()+", and is not used: "+connect.WithoutManagement,
			"set --management-url to the management API of this broker; "+byHand)
	case broker.Unauthorized(err):
		e.report(failure, err.Error(), fmt.Sprintf("give the user the tags it needs: %s %s\n"+
			"or, if it is another broker's: set --management-url to the management API of this broker", features.Ctl, connect.TagsCommand(e.conn.User())))
	case errors.Is(err, broker.ErrUnproven):
		e.report(failure, err.Error()+", so Millrace does not use it", "")
	default:
		enable := "say"
		if features.Plugins {
			enable = "rabbitmq-plugins enable rabbitmq_management, or say"
		}
		e.report(note, "does not answer: policies cannot be looked at, so jobs that workers reject, and jobs for queues "+
			"that do not exist yet, may be lost: "+err.Error(), enable+" where it is with --management-url; "+byHand)
	}
	return nil
}

func (e *examination) policyCommands() string {
	return strings.Join(broker.PolicyCommands(e.conn.Features(), e.conn.VHost()), "\n")
}

// permissions tries what Millrace's user may do.
func (e *examination) permissions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connect.PermissionsTimeout)
	defer cancel()
	lacks, err := e.conn.Topology().Lacks(ctx, connect.Needed)
	switch {
	case err != nil:
		e.report(note, err.Error(), "")
	case len(lacks) > 0:
		e.report(failure, fmt.Sprintf("user %s may not %s", e.conn.User(), strings.Join(lacks, ", ")),
			connect.Sidecar.Grant(e.conn.Features(), e.conn.VHost(), e.conn.User()))
	default:
		e.report(ok, "user "+e.conn.User()+" may do all that a sidecar does", "")
	}
	return nil
}

// alarms looks for reasons for which the broker refuses messages.
func (e *examination) alarms(ctx context.Context) error {
	alarms, err := e.mgmt.Alarms(ctx)
	for _, alarm := range alarms {
		e.report(failure, alarm+": the broker may block publishers, and then no jobs are delivered",
			"free memory or disk on the broker, or raise its limits: "+e.mgmt.Features().Ctl+" status shows both")
	}
	return err
}

// othersMayLock looks for other users that may take the leader's lock.
func (e *examination) othersMayLock(ctx context.Context) error {
	all, err := e.mgmt.Permissions(ctx)
	if broker.Unauthorized(err) {
		e.report(note, "only an administrator may list those of others (millrace doctor --permissions lists what each needs)", "")
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.User != e.conn.User() && mayLock(p) {
			e.report(note, fmt.Sprintf("user %s may declare %s; if it does, no sidecar can lead", p.User, wire.LeaderInbox),
				"take configure on jobs.* from clients (millrace doctor --permissions lists what each needs)")
		}
	}
	return nil
}

// mayLock reports whether a user can declare the leader's lock. Such a user can keep every sidecar
// from leading.
func mayLock(p broker.Permission) bool {
	re, err := regexp.Compile(p.Configure)
	return err == nil && p.Configure != "" && re.MatchString(wire.LeaderInbox)
}

// policies sets the policies that are missing, as every sidecar does, and looks for policies that
// win over them.
func (e *examination) policies(ctx context.Context) error {
	findings, err := e.mgmt.Policies(ctx)
	if broker.Unauthorized(err) {
		e.report(failure, "user "+e.conn.User()+" may not set them: jobs that workers reject, and jobs for queues that do not exist yet, "+
			"may be lost", "give the user the tag policymaker, or set them by hand:\n"+e.policyCommands())
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range findings {
		e.reportOn(f.Subject, failure, f.Problem, f.Remedy)
	}
	if len(findings) == 0 {
		e.report(ok, "Millrace's policies are set, and none wins over them", "")
	}
	return nil
}

// queues looks for job queues that lack something, and for jobs that wait where none should.
func (e *examination) queues(ctx context.Context) error {
	queues, err := e.allQueues(ctx)
	if err != nil {
		return err
	}
	for i := range queues {
		q := &queues[i]
		switch {
		case strings.HasPrefix(q.Name, wire.QueuePrefix):
			e.jobQueue(q)
		case q.Name == wire.Unrouted && q.Ready > 0:
			e.reportOn(q.Name, note, "left by an older version: "+wire.Counted(q.Ready, "job"), "start a sidecar: it moves them to "+wire.Gated)
		}
	}
	return nil
}

func (e *examination) jobQueue(q *broker.QueueInfo) {
	report := func(text, remedy string) { e.reportOn(q.Name, note, text, remedy) }
	if _, has := q.Arguments["x-max-priority"]; !has && (q.Type != string(broker.QueueQuorum) || !e.conn.Features().QuorumPriorities) {
		report("has no priorities: it was declared without x-max-priority", "if priorities matter, delete it while it is empty: Millrace makes it again")
	}
	if q.DeadLetterTo != "" && q.DeadLetterTo != wire.ExchangeDead {
		report("what workers reject goes to "+q.DeadLetterTo+", not among the dead jobs", "declare it without x-dead-letter-exchange")
	}
	drops := q.MaxLength > 0 || q.MaxLengthBytes > 0
	if drops && !q.MayRefuse() {
		report("has a length limit beyond which it drops its oldest jobs", "set overflow to reject-publish: Millrace then waits until there is room")
	}
}

// userIsShared looks for clients that use Millrace's user: they could write its journal.
func (e *examination) userIsShared(ctx context.Context) error {
	connections, err := e.mgmt.ConnectionsOf(ctx, e.conn.User())
	if err != nil {
		return err
	}
	var others []string
	for _, c := range connections {
		if !strings.HasPrefix(c.Given, connect.Name) {
			others = append(others, strings.TrimSpace(c.Given+" ("+c.Name+")"))
		}
	}
	if len(others) == 0 {
		e.report(ok, "no client shares the user "+e.conn.User(), "")
		return nil
	}
	e.report(note, fmt.Sprintf("%s beside Millrace as %s, and so could write what only Millrace may: %s",
		wire.Counted(int64(len(others)), "connection"), e.conn.User(), strings.Join(others[:min(len(others), 5)], ", ")), "")
	return nil
}

// clocks compares this machine's clock with the broker's. Producers, broker and sidecar should
// agree on when a job is due.
func (e *examination) clocks(ctx context.Context) error {
	before := time.Now()
	theirs, found, err := e.mgmt.Clock(ctx)
	if err != nil {
		return err
	}
	skew := skewOf(before, time.Now(), theirs)
	switch {
	case !found:
		e.report(note, "the broker does not report its time", "")
	case skew.Abs() > humantime.MaxSkew:
		e.report(failure, fmt.Sprintf("the broker's clock and this machine's are %s apart", skew.Abs().Round(time.Second)),
			"run NTP on every machine, for example timedatectl set-ntp true: a job is due by the sidecar's clock, at the time that its producer's gave")
	default:
		e.report(ok, "the broker's and this machine's agree", "")
	}
	return nil
}

// skewOf returns how far a clock is ahead of ours, as far as that can be known. The clock showed
// whole seconds between two instants.
func skewOf(before, after, theirs time.Time) time.Duration {
	if ahead := theirs.Sub(after); ahead > 0 {
		return ahead
	}
	if behind := theirs.Add(time.Second).Sub(before); behind < 0 {
		return behind
	}
	return 0
}

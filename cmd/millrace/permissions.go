package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// role is a kind of user of the broker, with what it needs there: regular expressions over names. Those that match nothing too are for
// LavinMQ, to which the default exchange has no name.
type role struct {
	name, configure, write, read, note string
}

const streamNames = `scheduled_jobs|retries|dead_jobs|heartbeats|job_metrics|job_metrics_rollups|job_journal`

var (
	// sidecarTags are those of a sidecar's user in the management API.
	sidecarTags = []string{"policymaker", "monitoring"}
	sidecarRole = role{
		"sidecar",
		`^(jobs\..*|queue\..*|amq\.gen.*|` + streamNames + `)$`,
		`^(jobs\..*|queue\..*|amq\.(gen.*|default)|` + streamNames + `)?$`,
		`^(jobs\..*|queue\..*|amq\.gen.*|` + streamNames + `)$`,
		"a user of its own, with the tags " + strings.Join(sidecarTags, " and "),
	}
	roles = []role{
		sidecarRole,
		{"producer", `^$`, `^(jobs\.direct|amq\.default)?$`, `^$`, "amq.default, and the ?, only if it schedules jobs"},
		{"worker", `^(queue\..*|amq\.gen.*)$`, `^(queue\..*|amq\.(gen.*|default))?$`, `^(queue\..*|amq\.gen.*|jobs\.(direct|control|begins))$`,
			"configure and write queue.* only if it declares its queues"},
	}
)

// needed are names that a sidecar must be allowed to configure, write and read, one of each kind. Queues of the broker's naming, and the
// default exchange, come on top.
var needed = []string{
	wire.ExchangeDirect, wire.ExchangeDead, wire.ExchangeRoute, wire.ExchangeFire, wire.ExchangeBury, wire.Unrouted, wire.Gated, wire.DeadLetters,
	wire.Control, wire.LeaderInbox, wire.WitnessPrefix + "x", wire.QueuePrefix + "x", wire.ScheduledJobs, wire.Retries,
	wire.DeadJobs, wire.Heartbeats, wire.JobMetrics, wire.Journal, wire.Rollups,
}

// mayLock tells whether a user can declare the leader's lock, and so keep everyone from leading.
func mayLock(p broker.Permission) bool {
	re, err := regexp.Compile(p.Configure)
	return err == nil && p.Configure != "" && re.MatchString(wire.LeaderInbox)
}

// grant is the command that gives a user what a role needs.
func (r role) grant(features broker.Features, vhost, user string) string {
	return features.Ctl + " " + r.permissions(vhost, user)
}

// permissions is the command without the program, whose name depends on the broker.
func (r role) permissions(vhost, user string) string {
	return fmt.Sprintf("set_permissions --vhost %s %s %s %s %s", quote(vhost), quote(user), quote(r.configure), quote(r.write), quote(r.read))
}

// quote makes a word that a POSIX shell leaves as it is.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// permissionsText lists what each role needs.
func permissionsText() string {
	var b strings.Builder
	for _, r := range roles {
		fmt.Fprintf(&b, "\n  %s (%s)\n    configure  %s\n    write      %s\n    read       %s\n", r.name, r.note, r.configure, r.write, r.read)
	}
	return b.String()
}

package connect

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// PermissionsTimeout bounds how long permissions are tried. A broker that takes no messages does
// not answer a publish.
const PermissionsTimeout = 5 * time.Second

// Role is a kind of user of the broker, with the permissions that it needs: regular expressions
// over names. Two parts are for LavinMQ. Its default exchange has no name, so some patterns also
// match the empty name. It gives direct replies only to users who may read them.
type Role struct {
	Name, Configure, Write, Read, Note string
}

const streamNames = `scheduled_jobs|retries|dead_jobs|heartbeats|job_metrics|job_metrics_rollups|job_journal`

var (
	// SidecarTags are the tags of a sidecar's user in the management API.
	SidecarTags = []string{"policymaker", "monitoring"}

	// Sidecar is the role of a sidecar's user.
	Sidecar = Role{
		"sidecar",
		`^(jobs\..*|queue\..*|amq\.gen.*|` + streamNames + `)$`,
		`^(jobs\..*|queue\..*|amq\.(gen.*|default)|` + streamNames + `)?$`,
		`^(jobs\..*|queue\..*|amq\.gen.*|` + streamNames + `)$`,
		"a user of its own, with the tags " + strings.Join(SidecarTags, " and "),
	}

	// Worker is the role of a worker's user.
	Worker = Role{
		"worker", `^(queue\..*|amq\.gen.*)$`, `^(queue\..*|amq\.(gen.*|default))?$`, `^(queue\..*|amq\.(gen.*|rabbitmq\.reply-to)|jobs\.(direct|control|begins))$`,
		"configure and write queue.* only if it declares its queues",
	}

	// Roles are all roles.
	Roles = []Role{
		Sidecar,
		{"producer", `^$`, `^(jobs\.direct|amq\.default)?$`, `^amq\.rabbitmq\.reply-to$`, "amq.default, and the ?, only if it schedules jobs"},
		Worker,
	}
)

// Needed are names that a sidecar must be allowed to configure, write and read, one of each kind. A
// queue that the broker names, and the default exchange, come on top.
var Needed = []string{
	wire.ExchangeDirect, wire.ExchangeDead, wire.ExchangeRoute, wire.ExchangeFire, wire.ExchangeBury, wire.Unrouted, wire.UnroutedFires, wire.Gated, wire.Full, wire.DeadLetters,
	wire.Control, wire.LeaderInbox, wire.WitnessPrefix + "x", wire.QueuePrefix + "x", wire.ScheduledJobs, wire.Retries,
	wire.DeadJobs, wire.Heartbeats, wire.JobMetrics, wire.Journal, wire.Rollups, wire.JobEnds,
}

// Grant returns the command that gives a user what the role needs.
func (r Role) Grant(features broker.Features, vhost, user string) string {
	return features.Ctl + " " + r.command(vhost, user)
}

// command returns the command without the program, whose name depends on the broker.
func (r Role) command(vhost, user string) string {
	return fmt.Sprintf("set_permissions --vhost %s %s %s %s %s", Quote(vhost), Quote(user), Quote(r.Configure), Quote(r.Write), Quote(r.Read))
}

// Quote returns a word that a POSIX shell leaves as it is.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// RefusedRemedy says what to do about a refusal, a line each. Before the login a broker does not
// say which product it is.
func RefusedRemedy(e *broker.RefusedError) string {
	command := func(text string) string { return "rabbitmqctl " + text + "   (LavinMQ: lavinmqctl " + text + ")" }
	user, vhost := Quote(e.User), Quote(e.VHost)
	switch e.Reason {
	case broker.RefusedVHost:
		return "correct the virtual host in --amqp-url, or create it: " + command("add_vhost "+vhost) + "\n" +
			"then give the user access: " + command(Sidecar.command(e.VHost, e.User))
	case broker.RefusedAccess:
		return "give the user access: " + command(Sidecar.command(e.VHost, e.User))
	}
	return "check user and password in --amqp-url (or --amqp-password, --amqp-password-file); guest may connect from the broker's own machine only\n" +
		"set the password: " + command("change_password "+user+" PASSWORD") + "\n" +
		"or add the user: " + command("add_user "+user+" PASSWORD")
}

package broker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/wire"
)

// ownStreams are Millrace's streams whose names do not begin with "jobs.".
var ownStreams = append([]string{wire.Journal, wire.Heartbeats, wire.JobMetrics, wire.Rollups, wire.JobEnds}, wire.EntryStreams...)

// OfMillrace reports whether Millrace uses the queue: it is one of its own, or a job queue.
func (q QueueInfo) OfMillrace() bool {
	return strings.HasPrefix(q.Name, wire.QueuePrefix) || strings.HasPrefix(q.Name, "jobs.") || slices.Contains(ownStreams, q.Name)
}

// wantedMembers is how many members a stream or quorum queue should have. Three keep a majority
// when one is lost.
const wantedMembers = 3

// MissingMembers returns how many members a stream or quorum queue lacks on a cluster of these
// nodes. It does not count members on nodes outside the cluster. It returns 0 for a classic queue,
// and while the broker has no figures.
func (q QueueInfo) MissingMembers(nodes []Node) int { return q.missing(nodes, q.Members) }

// MissingOnline is MissingMembers, but counts only members that are online.
func (q QueueInfo) MissingOnline(nodes []Node) int { return q.missing(nodes, q.Online) }

func (q QueueInfo) missing(nodes []Node, members []string) int {
	if len(q.Members) == 0 {
		return 0
	}
	missing := min(wantedMembers, len(nodes))
	for _, n := range nodes {
		if slices.Contains(members, n.Name) {
			missing--
		}
	}
	return max(missing, 0)
}

// StrayMembers returns the nodes that have a member of the queue and do not belong to the cluster.
func (q QueueInfo) StrayMembers(nodes []Node) (stray []string) {
	for _, member := range q.Members {
		if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Name == member }) {
			stray = append(stray, member)
		}
	}
	return stray
}

// MemberCommands returns the shell commands that add the missing members of a queue and delete
// those outside the cluster. No API for this exists in all versions of RabbitMQ.
func (q QueueInfo) MemberCommands(vhost string, nodes []Node) (commands []string) {
	program, add, remove := "rabbitmq-queues", "add_member", "delete_member"
	if q.Type == "stream" {
		program, add, remove = "rabbitmq-streams", "add_replica", "delete_replica"
	}
	command := func(verb, node string) {
		commands = append(commands, fmt.Sprintf("%s %s --vhost %s %s %s", program, verb, quote(vhost), quote(q.Name), node))
	}
	lacking := q.MissingMembers(nodes)
	for _, n := range nodes {
		if n.Running && lacking > 0 && !slices.Contains(q.Members, n.Name) {
			lacking--
			command(add, n.Name)
		}
	}
	for _, node := range q.StrayMembers(nodes) {
		command(remove, node)
		// RabbitMQ 3 keeps the replica of a removed node. To delete it fails with node_not_running.
		if q.Type == "stream" {
			commands[len(commands)-1] += " (once a node of this name has joined again)"
		}
	}
	return commands
}

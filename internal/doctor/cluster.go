package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/wire"
)

// cluster is what the management API says about a RabbitMQ cluster.
type cluster struct {
	features    broker.Features
	vhost       string
	defaultType string // of queues in the virtual host; empty if it has none
	typeUnknown bool   // the user may not ask for the default type
	nodes       []broker.Node
	queues      []broker.QueueInfo
}

// cluster looks at what the loss of a node would stop.
func (e *examination) cluster(ctx context.Context) (err error) {
	c := cluster{features: e.mgmt.Features(), vhost: e.conn.VHost()}
	if c.features.OneNodeServes {
		return e.followers(ctx)
	}
	if !c.features.QuorumQueues {
		return nil
	}
	if c.nodes, err = e.mgmt.Nodes(ctx); err != nil {
		return err
	}
	e.clustered = len(c.nodes) > 1
	if c.queues, err = e.allQueues(ctx); err != nil {
		return err
	}
	c.defaultType, err = e.mgmt.DefaultQueueType(ctx)
	switch {
	case broker.Unauthorized(err): // RabbitMQ answers only administrators
		c.typeUnknown = true
		e.reportOn("queue types", note, "only an administrator may ask for the virtual host's default type", "")
	case err != nil:
		return err
	}
	e.findings = append(e.findings, c.findings()...)
	return nil
}

// findings returns nothing for a single node without faults.
func (c *cluster) findings() []finding {
	all := c.quorumDefault()
	if len(c.nodes) < 2 {
		return all
	}
	all = append(all, c.members()...)
	all = append(all, c.partitions()...)
	for i := range c.queues {
		q := &c.queues[i]
		if !q.OfMillrace() {
			continue
		}
		all = append(all, c.replicas(q)...)
		all = append(all, c.mirrored(q)...)
		all = append(all, c.disconnected(q)...)
	}
	all = append(all, c.leaders()...)
	return append(all, c.homes()...)
}

// disconnected checks how long the broker keeps the lock for a sidecar whose node it has lost.
func (c *cluster) disconnected(q *broker.QueueInfo) []finding {
	const setting = "consumer-disconnected-timeout"
	if q.Name != wire.LeaderInbox || !c.features.DelaysNodeLoss {
		return nil
	}
	argument, given := q.Arguments["x-"+setting].(float64)
	policy, alsoGiven := q.Definition[setting].(float64)
	waits := 60 * time.Second
	if given || alsoGiven {
		waits = time.Duration(cmp.Or(argument, policy)) * time.Millisecond
	}
	problem := ""
	switch {
	case waits > wire.LeaderWait:
		problem = fmt.Sprintf("no jobs are delivered for %s after the node of the leader is lost: %s is too long", waits, setting)
	case waits < wire.LeaderWait:
		problem = fmt.Sprintf("%s is %s: two sidecars may deliver jobs for a moment when a node is lost", setting, waits)
	default:
		return nil
	}
	remedy := fmt.Sprintf("%s set_policy --vhost %s --priority 10 --apply-to quorum_queues millrace-leader %s %s", c.features.Ctl, connect.Quote(c.vhost),
		connect.Quote("^"+regexp.QuoteMeta(q.Name)+"$"), connect.Quote(fmt.Sprintf(`{"%s":%d}`, setting, wire.LeaderWait.Milliseconds())))
	if given {
		remedy = fmt.Sprintf("%s delete_queue --vhost %s %s (a sidecar makes it again)", c.features.Ctl, connect.Quote(c.vhost), q.Name)
	}
	return []finding{{failure, q.Name, problem, remedy}}
}

// leaders reports which node leads what. After the loss of a node, nothing fires until the election
// of another leader.
func (c *cluster) leaders() []finding {
	byNode := map[string][]string{}
	for i := range c.queues {
		if q := &c.queues[i]; q.Node != "" && len(q.Members) > 0 && q.OfMillrace() && !strings.HasPrefix(q.Name, wire.QueuePrefix) {
			byNode[q.Node] = append(byNode[q.Node], q.Name)
		}
	}
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		slices.Sort(byNode[node])
		parts = append(parts, node+": "+strings.Join(byNode[node], ", "))
	}
	if len(parts) == 0 {
		return nil
	}
	return []finding{{ok, "leaders", strings.Join(parts, "; "), ""}}
}

// quorumDefault reports what follows from the default type of queues.
func (c *cluster) quorumDefault() []finding {
	set := func(to string) string {
		return fmt.Sprintf("%s update_vhost_metadata %s --default-queue-type %s", c.features.Ctl, connect.Quote(c.vhost), to)
	}
	const subject = "queue types"
	switch isQuorum := c.defaultType == string(broker.QueueQuorum); {
	case isQuorum && !c.features.QuorumPriorities:
		return []finding{{note, subject, "quorum is the virtual host's default, and quorum queues of this broker have no priorities: Millrace makes classic queues, " +
			"and workers that declare a queue without a type are refused", set("classic")}}
	case isQuorum:
		return []finding{{note, subject, "quorum is the virtual host's default: workers that declare a queue with x-max-priority are refused (406)",
			"have workers look for their queue before they declare it, or make classic the default:\n" + set("classic")}}
	case c.features.QuorumPriorities && len(c.nodes) > 1 && !c.typeUnknown:
		return []finding{{note, subject, "new job queues are classic: jobs in one wait while its node is down", set("quorum")}}
	}
	return nil
}

// members checks the nodes themselves.
func (c *cluster) members() (all []finding) {
	versions := map[string]bool{}
	ticks := map[int]bool{}
	for _, n := range c.nodes {
		if !n.Running {
			all = append(all, finding{failure, "node " + n.Name, "is down", "start it; if it is gone for good: " + c.features.Ctl + " forget_cluster_node " + n.Name})
			continue
		}
		if n.Version != "" {
			versions[n.Version] = true
		}
		if n.NetTickTime > 0 {
			ticks[n.NetTickTime] = true
		}
	}
	if len(c.nodes) == 2 {
		all = append(all, finding{note, "cluster", "has two nodes: when either is down, streams and quorum queues have no majority, and no jobs are delivered",
			"add a third node: " + c.features.Ctl + " join_cluster " + c.nodes[0].Name + " (on that node)"})
	}
	if len(versions) > 1 {
		all = append(all, finding{note, "versions", "nodes run different versions: " + strings.Join(slices.Sorted(maps.Keys(versions)), ", "),
			"finish the upgrade: " + c.features.Ctl + " cluster_status lists the version of each node"})
	}
	if slowest := slices.Max(append(slices.Collect(maps.Keys(ticks)), 0)); slowest > maxTick {
		all = append(all, finding{note, "net_ticktime", fmt.Sprintf("is %d: a node that freezes is noticed after up to %d seconds, and deliveries may stop until then",
			slowest, slowest+slowest/4), "in rabbitmq.conf of each node: net_ticktime = 15. Then restart one node after the other"})
	}
	return all
}

// maxTick is the net_ticktime, in seconds, that is recommended.
const maxTick = 15

// partitions says how to look at a setting that the management API does not show.
func (c *cluster) partitions() []finding {
	if c.features.NoPartitionHandling {
		return nil
	}
	return []finding{{note, "partitions", "the management API does not show cluster_partition_handling. It must be pause_minority: with ignore or autoheal jobs can be " +
		"lost, and delivered twice, when nodes lose each other", "look on each node: " + c.features.Ctl +
		" eval 'application:get_env(rabbit, cluster_partition_handling).'\nset in rabbitmq.conf: cluster_partition_handling = pause_minority"}}
}

// replicas checks a stream or quorum queue: how many replicas it has, and how many of them are
// online.
func (c *cluster) replicas(q *broker.QueueInfo) (all []finding) {
	if len(q.Members) == 0 { // it is classic, or the broker has no figures yet
		return nil
	}
	if commands := q.MemberCommands(c.vhost, c.nodes); len(commands) > 0 || q.MissingMembers(c.nodes) > 0 {
		text := fmt.Sprintf("has %s on a cluster of %d nodes: %s", wire.Counted(int64(len(q.Members)), "replica"), len(c.nodes), strings.Join(q.Members, ", "))
		if stray := q.StrayMembers(c.nodes); len(stray) > 0 {
			text += "; no node of the cluster: " + strings.Join(stray, ", ")
		}
		if q.Name == wire.LeaderInbox {
			all = append(all, finding{note, q.Name, text, "nothing: while all nodes run, the leader makes it again, with a member on each"})
		} else {
			all = append(all, finding{failure, q.Name, text, strings.Join(commands, "\n")})
		}
	}
	var away []string
	for _, member := range q.Members {
		if !slices.Contains(q.Online, member) {
			away = append(away, member)
		}
	}
	switch {
	case len(away) == 0:
	case 2*len(q.Online) <= len(q.Members):
		all = append(all, finding{failure, q.Name, "has no majority: its replicas on " + strings.Join(away, ", ") + " are not online", "start these nodes"})
	default:
		all = append(all, finding{note, q.Name, "its replicas on " + strings.Join(away, ", ") + " are not online", "start these nodes"})
	}
	return all
}

// mirrored reports classic mirroring. A mirrored queue moves to another node, and what Millrace
// knows of it is then wrong.
func (c *cluster) mirrored(q *broker.QueueInfo) []finding {
	if !q.Mirrored || q.Type != "classic" {
		return nil
	}
	return []finding{{failure, q.Name, "is a mirrored classic queue: Millrace does not support them, jobs may be lost when its node dies",
		fmt.Sprintf("take ha-mode out of the policy %s; if it says nothing else: %s clear_policy --vhost %s %s", q.Policy, c.features.Ctl, connect.Quote(c.vhost), connect.Quote(q.Policy))}}
}

// homes lists classic job queues by node: their jobs wait while that node is down.
func (c *cluster) homes() (all []finding) {
	byNode := map[string][]string{}
	for i := range c.queues {
		if q := &c.queues[i]; q.Type == "classic" && strings.HasPrefix(q.Name, wire.QueuePrefix) {
			byNode[q.Node] = append(byNode[q.Node], q.Name)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		names := byNode[node]
		slices.Sort(names)
		const shown = 5
		text := strings.Join(names[:min(len(names), shown)], ", ")
		if more := len(names) - shown; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		remedy := ""
		if c.features.QuorumPriorities {
			remedy = "millrace queues move-type NAME quorum"
		}
		all = append(all, finding{note, "node " + node, "while it is down, jobs wait for these classic queues: " + text, remedy})
	}
	return all
}

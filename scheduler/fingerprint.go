package scheduler

import (
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
)

// sameNodes reports whether what identifies a broker's run names these nodes and links, and the
// witnesses that were seen.
func sameNodes(f broker.Fingerprint, known string) bool {
	if !sameLinks(f, known) {
		return false
	}
	for _, part := range strings.Fields(known) {
		name, id, _ := strings.Cut(part, "=")
		if seen := f.Nodes[name]; seen != "" && seen != id {
			return false
		}
	}
	return true
}

// sameLinks reports whether what identifies a broker's run names these nodes and links.
func sameLinks(f broker.Fingerprint, known string) bool {
	parts := strings.Fields(known)
	if len(parts) != len(f.Nodes)+len(f.Links) {
		return false
	}
	for _, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		_, isNode := f.Nodes[name]
		if !isNode && f.Links[name] != value {
			return false
		}
	}
	return true
}

// uptimes is by node how long it had run when it reported its links; nil if a running node has not
// reported them yet.
func uptimes(nodes []broker.Node) map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, n := range nodes {
		if n.Running && n.Uptime == 0 {
			return nil
		}
		all[n.Name] = n.Uptime
	}
	return all
}

// freshSince reports whether all running nodes have reported their links since their first report.
func freshSince(nodes []broker.Node, first map[string]time.Duration) bool {
	return !slices.ContainsFunc(nodes, func(n broker.Node) bool { return n.Running && n.Uptime <= first[n.Name] })
}

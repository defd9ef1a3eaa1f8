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

// sight is what can be seen of the witnesses of nodes that have not restarted as far as is known.
type sight int

const (
	noAnswer sight = iota // a node or the management API does not answer
	oneGone               // a node has none
	allSeen               // each node has the one that the last leader wrote down
)

// looks is what a leader has seen of nodes and witnesses while it waits for a verdict. A node of an
// overloaded broker does not answer now and then, so the looks in between need not show all.
type looks struct {
	last   sight                    // at the last look
	first  map[string]time.Duration // what the nodes reported after one that saw all witnesses
	taken  time.Time                // when that was
	absent time.Time                // since when a witness has been missing
}

// linksAge is how long after such a report another may speak for the links. It speaks only for what
// was fired before the first. Fires that no queue has answered are older when they are given up.
const linksAge = 20 * time.Second

// fresh takes in a report of the nodes, and says whether all of them have reported their links
// since all witnesses were seen.
func (l *looks) fresh(now time.Time, nodes []broker.Node) bool {
	if l.first == nil || now.Sub(l.taken) > linksAge {
		l.first = nil
		if l.last == allSeen {
			l.first, l.taken = uptimes(nodes), now
		}
	}
	return l.first != nil && freshSince(nodes, l.first)
}

// take takes in what was seen of the witnesses, after a report that was fresh or not. If there was
// no verdict and all were seen, the links are the same.
func (l *looks) take(now time.Time, saw sight, fresh bool) verdict {
	l.last = saw
	switch {
	case saw != oneGone:
		l.absent = time.Time{}
	case l.absent.IsZero():
		l.absent = now
	case now.Sub(l.absent) >= absentWithin:
		return gone
	}
	if saw == allSeen && fresh && now.Sub(l.taken) <= linksAge {
		return stands
	}
	return undecided
}

// missing says what a verdict waits for.
func (l *looks) missing() string {
	switch l.last {
	case oneGone:
		return "a witness is not there"
	case noAnswer:
		return "a node, or the management API, does not answer"
	}
	return "a node has not reported its links again"
}

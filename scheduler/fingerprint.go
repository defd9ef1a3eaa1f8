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
	allSeen   sight = iota // each node has the one that the last leader wrote down
	oneGone                // a node has none
	oneSilent              // a node does not answer, and the others have theirs
	noAnswer               // the management API does not answer, or a node has none and another is silent
)

// looks is what was seen of an overloaded broker, at which one look seldom shows everything.
type looks struct {
	seen   bool                     // all witnesses were, at one time
	first  map[string]time.Duration // what the nodes reported after that
	absent time.Time                // since when a witness has been missing
}

// fresh takes in a report of the nodes, and says whether all of them have reported their links
// since all witnesses were seen.
func (l *looks) fresh(nodes []broker.Node) bool {
	if !l.seen {
		return false
	}
	if l.first == nil {
		l.first = uptimes(nodes)
	}
	return l.first != nil && freshSince(nodes, l.first)
}

// take takes in a look at the witnesses, which found the links unchanged if it found a node. What
// was seen before counts: a node that is silent now and had restarted would have other links.
func (l *looks) take(now time.Time, saw sight, fresh bool) verdict {
	l.seen = l.seen || saw == allSeen
	switch {
	case saw != oneGone:
		l.absent = time.Time{}
	case l.absent.IsZero():
		l.absent = now
	}
	switch {
	case saw == oneGone && now.Sub(l.absent) >= absentWithin:
		return gone
	case fresh && (saw == allSeen || saw == oneSilent):
		return stands
	}
	return undecided
}

// missing says what a verdict waits for.
func (l *looks) missing(saw sight) string {
	switch {
	case saw == oneGone:
		return "a witness is not there"
	case !l.seen:
		return "a node, or the management API, does not answer"
	}
	return "a node has not reported its links again"
}

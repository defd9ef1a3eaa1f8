package wire

import (
	"fmt"
	"slices"
)

// What is done past the leader, and noted in the journal before it is.
const (
	NotedMade      = "made"      // a queue was
	NotedRemoved   = "removed"   // a queue was, with all jobs in it
	NotedPurged    = "purged"    // a queue lost the jobs that waited in it
	NotedMoved     = "moved"     // a queue's jobs went to another
	NotedRetyped   = "retyped"   // a queue became one of another type; only the leader notes that
	NotedQuieted   = "quieted"   // worker processes were told to take no more jobs
	NotedStopped   = "stopped"   // worker processes were told to end
	NotedCancelled = "cancelled" // worker processes were told to cancel a job that runs
)

// Noted is what a sidecar does past the leader: to a queue, or by telling workers. It has the leader journal who does that and why, and then
// does it; so what was done always stands there, and what stands there may, after a crash or where the broker refused it, not have been done.
type Noted struct {
	Op       string `json:"op"`
	Queue    string `json:"queue,omitempty"`
	To       string `json:"to,omitempty"`       // moved: the other queue; retyped: the new type
	Count    int64  `json:"count,omitempty"`    // how many jobs waited in the queue just before
	Identity string `json:"identity,omitempty"` // quieted, stopped, cancelled: of the process; "*": all
	JID      string `json:"jid,omitempty"`      // cancelled: of the job
}

func (n *Noted) check() error {
	switch {
	case n == nil:
		return fmt.Errorf("command %s needs what is noted", CommandNote)
	case n.Op == NotedCancelled && n.JID == "":
		return fmt.Errorf("command %s needs the jid of the job that is cancelled", CommandNote)
	case slices.Contains([]string{NotedQuieted, NotedStopped, NotedCancelled}, n.Op):
		if n.Identity == "" || len(n.Identity) > maxIdentity {
			return fmt.Errorf("command %s needs an identity of at most %d bytes", CommandNote, maxIdentity)
		}
		return nil
	case !slices.Contains([]string{NotedMade, NotedRemoved, NotedPurged, NotedMoved}, n.Op):
		return fmt.Errorf("command %s does not know what %q is", CommandNote, n.Op)
	}
	if err := CheckQueueName(n.Queue); err != nil {
		return fmt.Errorf("command %s needs a queue: %w", CommandNote, err)
	}
	if n.Op != NotedMoved {
		return nil
	}
	if err := CheckQueueName(n.To); err != nil {
		return fmt.Errorf("command %s needs the queue to move to: %w", CommandNote, err)
	}
	return nil
}

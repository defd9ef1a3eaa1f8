package wire

import (
	"fmt"
	"slices"
)

// Acts that a sidecar does itself. The leader journals them first.
const (
	NotedMade      = "made"      // creates a queue
	NotedRemoved   = "removed"   // deletes a queue, with all jobs in it
	NotedPurged    = "purged"    // deletes the jobs that wait in a queue
	NotedMoved     = "moved"     // moves a queue's jobs to another queue
	NotedRetyped   = "retyped"   // turns a queue into one of another type; only by the leader
	NotedQuieted   = "quieted"   // asks worker processes to take no more jobs
	NotedStopped   = "stopped"   // asks worker processes to stop
	NotedCancelled = "cancelled" // asks worker processes to cancel a running job
)

// Noted is an act that a sidecar does itself, on a queue or on workers. First the leader journals
// who does it and why, then the sidecar does it. So every such act is in the journal. After a
// crash, or if the broker refuses it, the journal may have an act that was not done.
type Noted struct {
	Op       string `json:"op"`
	Queue    string `json:"queue,omitempty"`
	To       string `json:"to,omitempty"`       // moved: the other queue; retyped: the new type
	Count    int64  `json:"count,omitempty"`    // how many jobs wait in the queue just before
	Identity string `json:"identity,omitempty"` // quieted, stopped, cancelled; "*" means all
	JID      string `json:"jid,omitempty"`      // cancelled: the job
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

package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// A lease is a job that a worker took from its queue over HTTP. It is an entry of scheduled_jobs
// that is due when the lease ends. The jid of the entry is the lease's id, so that two leases never
// count as one publish. The job in it keeps its own jid.

// MaxRunOut is how many leases of a job may run out before the job goes to no worker any more. A
// poison job may kill as many workers.
const MaxRunOut = 3

const leasePrefix = "lease"

// Lease is what the id of a lease says.
type Lease struct {
	RanOut int       // how many leases of the job ran out before this one
	At     time.Time // when it began
}

// NewLeaseID returns a new id for a lease.
func NewLeaseID(l Lease) string {
	return fmt.Sprintf("%s-%d-%s-%s", leasePrefix, l.RanOut, strconv.FormatInt(l.At.UnixMilli(), 36), rand.Text())
}

// ParseLeaseID parses the id of a lease.
func ParseLeaseID(id string) (l Lease, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) != 4 || parts[0] != leasePrefix || len(parts[3]) < 16 || len(id) > 100 || id != ASCII(id) {
		return l, false
	}
	n, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil {
		return l, false
	}
	at, err := strconv.ParseUint(parts[2], 36, 48)
	if err != nil {
		return l, false
	}
	return Lease{int(n), time.UnixMilli(int64(at))}, true
}

// RanOut returns how many leases of a job have run out, if the last one brought the job back into
// its queue. The message must be Millrace's own.
func RanOut(d *Delivery) int {
	dispatch, ok := DispatchOf(d.Headers)
	if !ok || dispatch.Stream != ScheduledJobs || dispatch.Op != OpFired && dispatch.Op != OpRefired {
		return 0
	}
	if l, ok := ParseLeaseID(dispatch.JIDTag); ok {
		return l.RanOut + 1
	}
	return 0
}

// LeasedJob returns the job of a delivery with what it needs to come back unchanged: a jid, its
// queue, and a priority that only its message had. It returns an error for a job that no worker can
// decode.
func LeasedJob(d *Delivery, queue string) (job Job, err error) {
	if !utf8.Valid(d.Body) {
		return job, fmt.Errorf("job is not UTF-8")
	}
	if job, err = ParseJob(d.Body); err != nil {
		return job, err
	}
	raw, err := withJID(d.Body, namelessJID(d))
	if err == nil {
		raw, err = WithQueue(raw, queue)
	}
	if o, fault := shared.ParseObject(string(raw), shared.JobMembers); err == nil && fault == nil && d.Priority > 0 && !o.Has("priority") {
		raw, err = shared.SetRaw(raw, "priority", strconv.Itoa(min(int(d.Priority), MaxPriority)))
	}
	if err != nil {
		return job, err
	}
	return ParseJob(raw)
}

// namelessJID returns the jid that workers give a job without one.
func namelessJID(d *Delivery) string {
	if d.MessageID != "" {
		return d.MessageID
	}
	sum := sha256.Sum256(d.Body)
	return hex.EncodeToString(sum[:12])
}

// LeaseMessage returns the message that adds a leased job to scheduled_jobs. The job may hold a
// slot. LeaseMessage returns an error if the record would be too large.
func LeaseMessage(id string, until time.Time, job *Job, trace, slot string) (Message, error) {
	m := Message{Key: ScheduledJobs, MessageID: id, Type: Property(job.Class), Headers: map[string]any{HeaderLease: int64(1)}, Body: ScheduledJob(id, Seconds(until), job.Raw)}
	if trace != "" {
		m.Headers[HeaderTraceparent] = trace
	}
	if slot != "" {
		m.Headers[HeaderSlot] = slot
	}
	_, err := ParseEntry(ScheduledJobs, 0, m.Body)
	return m, err
}

// Ids of commands that settle a lease begin with these. A repeated command with the same id is
// answered from the journal.
const (
	LeaseAck    = "lease ack "
	LeaseFail   = "lease fail "
	LeaseExtend = "lease extend "
)

// SettlesLease reports whether the command with this id settles a lease.
func SettlesLease(command string) bool { return strings.HasPrefix(command, leasePrefix+" ") }

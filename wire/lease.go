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

// A lease is a job that somebody took from its queue over HTTP: an entry of scheduled_jobs that is due when the lease ends. The entry's jid is
// the lease's id, so that two leases are never taken for one publish; the job within keeps its own.

// HeaderLease marks an entry as a lease.
const HeaderLease = "millrace-lease"

// MaxRunOut is how many leases of a job may run out before nobody gets it any more: as many as workers may die of it.
const MaxRunOut = 3

const leasePrefix = "lease"

// Lease is what a lease's id says.
type Lease struct {
	RanOut int       // how many leases of the job had run out before it
	At     time.Time // when it began
}

// NewLeaseID names a lease.
func NewLeaseID(l Lease) string {
	return fmt.Sprintf("%s-%d-%s-%s", leasePrefix, l.RanOut, strconv.FormatInt(l.At.UnixMilli(), 36), rand.Text())
}

// ParseLeaseID reads a lease's id.
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

// RanOut is how many leases of a job ran out that came back into its queue because of that. The message must be Millrace's own.
func RanOut(d *Delivery) int {
	deed, ok := DeedOf(d.Headers)
	if !ok || deed.Stream != ScheduledJobs || deed.Op != OpFired && deed.Op != OpRefired {
		return 0
	}
	if l, ok := ParseLeaseID(deed.JIDTag); ok {
		return l.RanOut + 1
	}
	return 0
}

// LeasedJob is the job of a delivery with what it needs to come back as it was: a jid, its queue, and the priority that only its message had.
// What it refuses no worker can decode.
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

// namelessJID is how workers name a job that has no jid.
func namelessJID(d *Delivery) string {
	if d.MessageID != "" {
		return d.MessageID
	}
	sum := sha256.Sum256(d.Body)
	return hex.EncodeToString(sum[:12])
}

// LeaseMessage is a leased job on its way to the scheduled jobs. It fails where the record would be larger than what is read.
func LeaseMessage(id string, until time.Time, job *Job, trace string) (Message, error) {
	m := Message{Key: ScheduledJobs, MessageID: id, Type: Property(job.Class), Headers: map[string]any{HeaderLease: int64(1)}, Body: ScheduledJob(id, Seconds(until), job.Raw)}
	if trace != "" {
		m.Headers[HeaderTraceparent] = trace
	}
	_, err := ParseEntry(ScheduledJobs, 0, m.Body)
	return m, err
}

// Commands that settle a lease have ids of their own, so that repeating one is answered from the journal.
const (
	LeaseAck    = "lease ack "
	LeaseFail   = "lease fail "
	LeaseExtend = "lease extend "
)

// SettlesLease tells whether a command's id is of one that settles a lease.
func SettlesLease(command string) bool { return strings.HasPrefix(command, leasePrefix+" ") }

package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Headers of messages that Millrace publishes.
const (
	HeaderPrefix      = "millrace-" // how all but the last of these begin
	HeaderFormat      = "millrace-format"
	HeaderOp          = shared.HeaderOp
	HeaderStream      = "millrace-stream"
	HeaderOffset      = "millrace-offset"
	HeaderJID         = "millrace-jid"
	HeaderEpoch       = shared.HeaderEpoch
	HeaderSeq         = "millrace-seq"
	HeaderConfirmed   = "millrace-confirmed"
	HeaderAbove       = "millrace-above" // confirmed numbers above HeaderConfirmed
	HeaderActor       = "millrace-actor"
	HeaderCommand     = "millrace-command"
	HeaderReplaces    = "millrace-replaces"
	HeaderFirst       = "millrace-first"
	HeaderParked      = "millrace-parked"    // carried-over entry: why the broker refuses it
	HeaderAnnounces   = "millrace-announces" // replacement: type of the journal record to come
	HeaderUndoes      = "millrace-undoes"    // replacement: offset of the undone journal record
	HeaderDead        = "millrace-dead"      // replacement: offset of the dead job to remove
	HeaderDropped     = "millrace-dropped"   // dead job that a queue dropped: the broker's reason
	HeaderOperation   = "millrace-operation" // id of the bulk operation
	HeaderRouted      = "millrace-routed"    // probe: journal offset up to which all fires arrived
	HeaderKey         = "millrace-key"       // entry that was enqueued under a key
	HeaderSum         = "millrace-sum"       // the same: checksum of the request
	HeaderLease       = "millrace-lease"     // marks an entry as a lease
	HeaderCopy        = "millrace-copy"      // carried-over copy in jobs.gated: the op of the fire that found no queue
	HeaderUserID      = "millrace-user-id"   // delayed message: see SenderOf
	HeaderSlot        = shared.HeaderSlot    // fire that limits count: see Slot
	HeaderClaim       = shared.HeaderClaim   // the same: it must be claimed before it runs
	HeaderRates       = "millrace-rates"     // fire: the rates that it used, see RateUse
	HeaderAdmitted    = "millrace-admitted"  // replacement: the job has its key, see Admission
	HeaderTraceparent = "traceparent"
)

// Ops of fires and burials: what the leader did to the entry by publishing the message.
const (
	OpFired     = "fired"          // the entry was due
	OpTriggered = "triggered"      // a user fired a scheduled job early
	OpRetried   = "retried"        // a user fired a retry early, or a dead job again
	OpEnqueued  = "enqueued"       // enqueued under a key, through the leader
	OpRefired   = shared.OpRefired // fired again, because the first fire may not have arrived
	OpBuried    = "buried"         // a user killed it
	OpExpired   = "expired"        // past its expires_at when due

	OpProbe = "probe" // neither: a message that tests the route of fires
)

// HeaderInt returns an integer from a header, or 0 if there is none.
func HeaderInt(headers map[string]any, name string) int64 {
	n, _ := headers[name].(int64)
	return n
}

// JIDTag returns the name of a jid in headers and journal records: the jid itself, or its hash if a
// header cannot hold it.
func JIDTag(jid string) string {
	if shared.FitsHeader(jid) {
		return jid
	}
	sum := sha256.Sum256([]byte(jid))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// From returns the user who wrote the record, as a reason for its refusal says it.
func (r *Record) From() string { return "it came from user " + cmp.Or(ASCII(r.UserID), "(none)") }

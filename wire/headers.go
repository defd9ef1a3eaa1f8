package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"unicode/utf8"

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

// Dispatch has what the headers of a fire or burial say.
type Dispatch struct {
	Op        string
	Stream    string
	Offset    int64
	JIDTag    string
	Epoch     int64
	Seq       int64
	Confirmed int64
	Actor     string
	Command   string
	Operation string // id of the bulk operation
	Slot      string // the slot that the fire takes, or keeps: see Slot
	Claim     bool   // workers must claim the slot
	Rates     string // see RateUse
}

// Headers returns the dispatch as message headers.
func (d Dispatch) Headers() map[string]any {
	h := map[string]any{
		HeaderFormat: int64(Format), HeaderOp: d.Op, HeaderStream: d.Stream, HeaderOffset: d.Offset, HeaderJID: d.JIDTag,
		HeaderEpoch: d.Epoch, HeaderSeq: d.Seq, HeaderConfirmed: d.Confirmed,
	}
	if d.Actor != "" {
		h[HeaderActor] = ASCII(d.Actor)
	}
	if d.Command != "" {
		h[HeaderCommand] = ASCII(d.Command)
	}
	if d.Operation != "" {
		h[HeaderOperation] = ASCII(d.Operation)
	}
	if d.Slot != "" {
		h[HeaderSlot] = d.Slot
	}
	if d.Claim {
		h[HeaderClaim] = int64(1)
	}
	if d.Rates != "" {
		h[HeaderRates] = d.Rates
	}
	return h
}

// DispatchOf parses the headers of a fire or burial. ok is false for any other record.
func DispatchOf(headers map[string]any) (d Dispatch, ok bool) {
	d.Op, ok = headers[HeaderOp].(string)
	if !ok || d.Op == OpProbe {
		return Dispatch{}, false
	}
	d.Stream, _ = headers[HeaderStream].(string)
	d.JIDTag, _ = headers[HeaderJID].(string)
	d.Actor, _ = headers[HeaderActor].(string)
	d.Command, _ = headers[HeaderCommand].(string)
	d.Operation, _ = headers[HeaderOperation].(string)
	d.Offset = HeaderInt(headers, HeaderOffset)
	d.Epoch = HeaderInt(headers, HeaderEpoch)
	d.Seq = HeaderInt(headers, HeaderSeq)
	d.Confirmed = HeaderInt(headers, HeaderConfirmed)
	d.Slot, _ = headers[HeaderSlot].(string)
	d.Rates, _ = headers[HeaderRates].(string)
	return d, true
}

// Burial reports whether the dispatch sent a job to dead_jobs, and not to its queue.
func (d Dispatch) Burial() bool { return d.Op == OpBuried || d.Op == OpExpired }

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

// ASCII returns s as a header can hold it: at most 255 bytes of printable ASCII, with "?" for every
// other character.
func ASCII(s string) string {
	out := make([]byte, 0, min(len(s), shared.MaxShort))
	for _, r := range s {
		if len(out) == shared.MaxShort {
			break
		}
		if r < ' ' || r > '~' {
			r = '?'
		}
		out = append(out, byte(r))
	}
	return string(out)
}

// Probe is what the headers of a probe say.
type Probe struct {
	Epoch     int64
	Number    int64 // distinguishes the probes of an epoch
	Confirmed int64 // as in a Dispatch
	Routed    int64 // up to this offset of the journal all fires are known to have arrived
}

// From returns the user who wrote the record, as a reason for its refusal says it.
func (r *Record) From() string { return "it came from user " + cmp.Or(ASCII(r.UserID), "(none)") }

// TraceOf returns the traceparent of a message if it may be passed on, and "" otherwise.
func TraceOf(headers map[string]any) string { return shared.Traceparent(headers[HeaderTraceparent]) }

// TraceHeaders returns headers that have nothing but a trace.
func TraceHeaders(trace string) map[string]any {
	if trace == "" {
		return nil
	}
	return map[string]any{HeaderTraceparent: trace}
}

// Provenance is what headers say of who published a job. Each message about the job keeps it.
type Provenance struct {
	Trace  string // its traceparent
	Sender string // of a delayed message: the user_id with which it was published
}

// ProvenanceOf returns the provenance in the headers of a message, with the user_id that the broker
// has checked.
func ProvenanceOf(headers map[string]any, userID string, trusted bool) Provenance {
	return Provenance{TraceOf(headers), SenderOf(headers, userID, trusted)}
}

// AddTo adds the provenance to headers.
func (p Provenance) AddTo(headers map[string]any) {
	if p.Trace != "" {
		headers[HeaderTraceparent] = p.Trace
	}
	if p.Sender != "" {
		headers[HeaderUserID] = p.Sender
	}
}

// SenderOf returns the user_id with which a delayed message was published, and "" if that is not
// known. A header says so. It counts in what Millrace published itself, and if the broker has
// checked that the record is of the same user.
func SenderOf(headers map[string]any, userID string, trusted bool) string {
	sender, _ := headers[HeaderUserID].(string)
	if !trusted && sender != userID || len(sender) > shared.MaxShort || !utf8.ValidString(sender) {
		return ""
	}
	return sender
}

// ProbeOf parses the headers of a probe. ok is false for any other message. The caller must check
// by the user that Millrace sent it.
func ProbeOf(headers map[string]any) (p Probe, ok bool) {
	if headers[HeaderOp] != OpProbe {
		return p, false
	}
	p.Epoch, p.Number = HeaderInt(headers, HeaderEpoch), HeaderInt(headers, HeaderSeq)
	p.Confirmed, p.Routed = HeaderInt(headers, HeaderConfirmed), HeaderInt(headers, HeaderRouted)
	return p, true
}

// enqueues reports whether an entry that announces a record is a job that the leader enqueued, and
// replaces no other entry.
func enqueues(what string) bool { return what == OpEnqueued || what == TypeTicked }

// Announcement is what the headers of a replacement say about the request of a user. The leader
// journals it after it has read the replacement back.
type Announcement struct {
	What      string `json:"what"`              // the type of the journal record to come
	Stream    string `json:"stream"`            // of both entries
	Offset    int64  `json:"offset"`            // of the replacement
	Replaces  int64  `json:"replaces"`          // offset of the entry that it replaces
	JIDTag    string `json:"jid"`               // of both entries
	Command   string `json:"command,omitempty"` // id of the command
	Actor     string `json:"actor,omitempty"`
	Operation string `json:"operation,omitempty"` // id of the bulk operation
	Undoes    int64  `json:"undoes,omitempty"`    // undone: the journal record that is undone
	Dead      *int64 `json:"dead,omitempty"`      // undone, of a kill: the dead job to remove
	Key       string `json:"key,omitempty"`       // enqueued, ticked: the key; nothing is replaced
	Sum       string `json:"sum,omitempty"`       // enqueued: checksum of the request
	JID       string `json:"full_jid,omitempty"`  // enqueued, ticked: the jid itself, not its tag
}

// Headers returns the announcement as headers of the replacement.
func (a Announcement) Headers(epoch int64) map[string]any {
	h := map[string]any{HeaderEpoch: epoch, HeaderAnnounces: a.What}
	switch a.What {
	case OpEnqueued:
		h[HeaderKey], h[HeaderSum] = a.Key, a.Sum
	case TypeTicked:
		h[HeaderKey] = a.Key
	default:
		h[HeaderReplaces] = a.Replaces
	}
	for name, text := range map[string]string{HeaderCommand: a.Command, HeaderActor: a.Actor, HeaderOperation: a.Operation} {
		if text != "" {
			h[name] = ASCII(text)
		}
	}
	if a.Undoes > 0 {
		h[HeaderUndoes] = a.Undoes
	}
	if a.Dead != nil {
		h[HeaderDead] = *a.Dead
	}
	return h
}

// AnnouncementOf parses the headers of a replacement. ok is false if they announce nothing. The jid
// is left out.
func AnnouncementOf(r *Record) (a Announcement, ok bool) {
	a.What, _ = r.Headers[HeaderAnnounces].(string)
	if !slices.Contains([]string{TypeChanged, TypeUndone, OpEnqueued, TypeTicked}, a.What) {
		return a, false
	}
	a.Stream, a.Offset = r.Stream, r.Offset
	a.Replaces, a.Undoes = HeaderInt(r.Headers, HeaderReplaces), HeaderInt(r.Headers, HeaderUndoes)
	a.Key, _ = r.Headers[HeaderKey].(string)
	a.Sum, _ = r.Headers[HeaderSum].(string)
	a.Command, _ = r.Headers[HeaderCommand].(string)
	a.Actor, _ = r.Headers[HeaderActor].(string)
	a.Operation, _ = r.Headers[HeaderOperation].(string)
	if dead, given := r.Headers[HeaderDead].(int64); given {
		a.Dead = &dead
	}
	return a, true
}

// Record returns the journal record that was announced. The caller fills in the other members.
func (a Announcement) Record() JournalRecord {
	by := a.Offset
	return JournalRecord{Type: a.What, Stream: a.Stream, Offset: a.Replaces, JID: a.JIDTag, By: &by, Undoes: a.Undoes, Dead: a.Dead,
		Command: a.Command, Actor: a.Actor, InOperation: a.Operation}
}

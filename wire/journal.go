package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Format is the version of the journal that this build writes and the newest that it understands.
const Format = 2

// Headers of what Millrace publishes.
const (
	HeaderFormat      = "millrace-format"
	HeaderOp          = "millrace-op"
	HeaderStream      = "millrace-stream"
	HeaderOffset      = "millrace-offset"
	HeaderJID         = "millrace-jid"
	HeaderEpoch       = "millrace-epoch"
	HeaderSeq         = "millrace-seq"
	HeaderConfirmed   = "millrace-confirmed"
	HeaderAbove       = "millrace-above" // numbers above HeaderConfirmed that are confirmed too
	HeaderActor       = "millrace-actor"
	HeaderCommand     = "millrace-command"
	HeaderReplaces    = "millrace-replaces"
	HeaderFirst       = "millrace-first"
	HeaderParked      = "millrace-parked"    // of a parked entry that is carried over: why the broker cannot take it
	HeaderAnnounces   = "millrace-announces" // of a replacement that a person asked for: the journal record that is to tell of it
	HeaderUndoes      = "millrace-undoes"    // of such a replacement: the journal record that is taken back, by its offset
	HeaderDead        = "millrace-dead"      // of such a replacement: the dead job that goes, by its offset
	HeaderDropped     = "millrace-dropped"   // of a dead job that a queue dropped: the broker's reason
	HeaderOperation   = "millrace-operation" // the bulk operation that this is part of
	HeaderRouted      = "millrace-routed"    // of a probe: up to this offset of the journal, all that was fired reached its queue
	HeaderTraceparent = "traceparent"
)

// Ops of fires and burials: what the leader did to the entry with the publish that carries them.
const (
	OpFired     = "fired"     // due
	OpTriggered = "triggered" // a person fired a scheduled job early
	OpRetried   = "retried"   // a person fired a retry early, or a dead job again
	OpEnqueued  = "enqueued"  // enqueued through the leader, for idempotency
	OpRefired   = "refired"   // fired again, because the first fire may not have reached its queue
	OpBuried    = "buried"    // a person killed it
	OpExpired   = "expired"   // past its expires_at when due

	OpProbe = "probe" // neither: a message that takes the way of a fire, to see whether it leads anywhere
)

// Types of the journal's JSON records.
const (
	TypeOpened    = "opened"    // an epoch begins: its number is this record's offset
	TypeWitness   = "witness"   // this epoch leads; or the broker's nodes or links changed: what it has in Witness would not outlive another change
	TypeConfirmed = "confirmed" // every fire and burial of this epoch up to Through is confirmed, and those in Above
	TypeReturned  = "returned"  // a fire or burial of this epoch did not reach its queue, or may not have
	TypeDelivered = "delivered" // settled: a doubtful fire or burial of an earlier epoch did reach its target
	TypeUnburied  = "unburied"  // settled: a doubtful burial of an earlier epoch did not, or a fire is to be fired again later
	TypeRefused   = "refused"   // the broker cannot take this entry: parked
	TypeDuplicate = "duplicate" // the same publish as a pending entry
	TypeExpired   = "expired"   // past its expires_at and not to be buried
	TypeDeleted   = "deleted"   // by a person, with the entry's bytes
	TypeChanged   = "changed"   // by a person, with the entry's bytes as they were
	TypeUndone    = "undone"    // a person took back what was deleted, killed or changed: another entry stands for it
	TypeKilled    = "killed"    // by a person: the burial is confirmed; with the entry's bytes
	TypeTrimmed   = "trimmed"   // dead jobs that were too many, or too old
	TypeLowWater  = "low-water" // below these offsets everything is settled
	TypeRecreated = "recreated" // an entry stream was deleted and made anew, or lost its end and what low water said
	TypeAstray    = "astray"    // what was fired may have reached no queue, although it was confirmed: the way there was broken
	TypeReleased  = "released"  // held entries may fire, but for those up to Held
	TypeState     = "state"     // pauses, operations, idempotency keys
	TypeOperation = "operation" // a bulk operation's progress
	TypeRejected  = "rejected"  // what a classic queue held that is no job
	TypeDismissed = "dismissed" // a rejected record was taken off the list
	TypeNoted     = "noted"     // a person does something past the leader: to a queue, or to workers
	TypeBarrier   = "barrier"   // in entry streams: a leader's epoch begins here
)

// Everything is the offset up to which an entry stream is held when nobody can say yet where what is in question ends.
const Everything = 1<<53 - 1

// JournalRecord is one JSON record of the journal. Type says which of the members matter.
type JournalRecord struct {
	Type  string  `json:"type"`
	At    float64 `json:"at"`
	Epoch int64   `json:"epoch,omitempty"`

	// opened
	Format         int              `json:"format,omitempty"`
	Identity       string           `json:"identity,omitempty"`
	LowWater       map[string]int64 `json:"low_water,omitempty"` // also low-water
	Needs          int64            `json:"needs,omitempty"`     // also low-water
	Held           map[string]int64 `json:"held,omitempty"`      // also released: what stays held
	KnownConfirmed *Confirmed       `json:"known_confirmed,omitempty"`
	Probe          string           `json:"probe,omitempty"`   // the exclusive queue where its leader's probes arrive
	ReadTo         int64            `json:"read_to,omitempty"` // behind what its leader knew to be confirmed; low-water: behind what it had read. Never above the record itself

	Queue   string `json:"queue,omitempty"`   // rejected; in format 1 also Witness
	Through int64  `json:"through,omitempty"` // confirmed
	Above   Ranges `json:"above,omitempty"`   // confirmed

	Witness     string   `json:"witness,omitempty"`      // witness; opened and low-water: the one that stands
	WitnessFrom *Through `json:"witness_from,omitempty"` // opened and low-water: of what was fired after this it can tell

	RoutedTo *int64 `json:"routed_to,omitempty"` // opened, low-water, confirmed: up to this offset of the journal, all that was fired reached its queue

	// The fire or burial that is returned, delivered or unburied. FiredEpoch is left out where it is this epoch.
	Seq        int64 `json:"seq,omitempty"`
	FiredEpoch int64 `json:"fired_epoch,omitempty"`

	// The entry that this is about.
	Stream string `json:"stream,omitempty"`
	Offset int64  `json:"offset"`
	JID    string `json:"jid,omitempty"`

	TookBack string `json:"took_back,omitempty"` // returned, unburied: the id of the command that asked for the deed, which may be repeated

	Reason  string          `json:"reason,omitempty"`
	Error   string          `json:"error,omitempty"`
	Actor   string          `json:"actor,omitempty"`
	Command string          `json:"command,omitempty"` // the id of the command that asked for it
	Entry   json.RawMessage `json:"entry,omitempty"`   // the entry's bytes: deleted, changed, killed
	By      *int64          `json:"by,omitempty"`      // changed, undone: the entry that stands for it now
	Undoes  int64           `json:"undoes,omitempty"`  // undone: the record that is taken back
	Dead    *int64          `json:"dead,omitempty"`    // undone: the dead job that goes with that
	DiedAt  float64         `json:"died_at,omitempty"` // killed: of the dead job
	Body    []byte          `json:"body,omitempty"`    // rejected: what came, at most 64 KiB

	Read *int64 `json:"read,omitempty"` // barrier: up to where its leader had read the stream

	Below int64 `json:"below,omitempty"` // recreated: what stands below is settled all the same

	Entries []Trimmed `json:"entries,omitempty"` // trimmed
	Count   int64     `json:"count,omitempty"`   // trimmed

	InOperation string `json:"in_operation,omitempty"` // the bulk operation that this is part of

	Paused *map[string]Pause `json:"paused,omitempty"` // state: all queues that are paused from here on

	Enqueued *Enqueued  `json:"enqueued,omitempty"` // enqueued
	Keys     []Enqueued `json:"keys,omitempty"`     // state: keys that low water would forget

	Operation *Operation `json:"operation,omitempty"` // operation: as it begins, goes on and ends; state: as it stands

	Noted *Noted `json:"noted,omitempty"` // noted
}

// StandingWitness is what a record says of the witness. Format 1 had it as the name of a queue.
func (r *JournalRecord) StandingWitness() string {
	if r.Type == TypeRejected {
		return ""
	}
	return cmp.Or(r.Witness, r.Queue)
}

// Trimmed is an entry that was given up.
type Trimmed struct {
	Offset int64  `json:"offset"`
	JID    string `json:"jid"` // as in headers: JIDTag
}

// Through names a fire of an epoch.
type Through struct {
	Epoch   int64 `json:"epoch"`
	Through int64 `json:"through"`
}

// Compare orders fires as they were sent.
func (t Through) Compare(other Through) int {
	return cmp.Or(cmp.Compare(t.Epoch, other.Epoch), cmp.Compare(t.Through, other.Through))
}

// Append is the record as a message to a stream. seq is its own number in its epoch. An entry's bytes are left out where the record
// would be larger than what is read: whoever wants them back must find them in the entry's stream.
func (r JournalRecord) Append(stream string, seq, confirmed int64) Message {
	entry := r.Entry
	r.Entry = nil
	body, err := json.Marshal(r)
	if err != nil { // only a number that JSON cannot say
		panic(fmt.Sprintf("wire: journal record %s: %v", r.Type, err))
	}
	if with := withEntry(body, entry); len(with) <= MaxRecord {
		body = with
	}
	return Message{Key: stream, Type: r.Type, Body: body, Headers: map[string]any{
		HeaderFormat: int64(Format), HeaderEpoch: r.Epoch, HeaderSeq: seq, HeaderConfirmed: confirmed,
	}}
}

// withEntry adds an entry's bytes to a record, as they are: Marshal would write them anew.
func withEntry(record, entry []byte) []byte {
	if len(entry) == 0 {
		return record
	}
	return slices.Concat(trimClose(record), []byte(`,"entry":`), entry, []byte{'}'})
}

// ParseJournal reads a JSON record of the journal, or a barrier.
func ParseJournal(body []byte) (JournalRecord, error) {
	var r JournalRecord
	if err := shared.CheckRecord(body); err != nil {
		return r, err
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return r, fmt.Errorf("journal record: %w", err)
	}
	if r.Type == "" {
		return r, fmt.Errorf("journal record has no type")
	}
	return r, nil
}

// JournalType is the type of a JSON record of the journal, read without the rest of it.
func JournalType(body []byte) string { return gjson.GetBytes(body, "type").String() }

// Deed is what the headers of a fire or burial say of it.
type Deed struct {
	Op        string
	Stream    string
	Offset    int64
	JIDTag    string
	Epoch     int64
	Seq       int64
	Confirmed int64
	Actor     string
	Command   string
	Operation string // the bulk operation that it is part of
}

// Headers is the deed as message headers.
func (d Deed) Headers() map[string]any {
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
	return h
}

// DeedOf reads the headers of a fire or burial; ok is false for a record that is none.
func DeedOf(headers map[string]any) (d Deed, ok bool) {
	d.Op, ok = headers[HeaderOp].(string)
	if !ok || d.Op == OpProbe {
		return Deed{}, false
	}
	d.Stream, _ = headers[HeaderStream].(string)
	d.JIDTag, _ = headers[HeaderJID].(string)
	d.Actor, _ = headers[HeaderActor].(string)
	d.Command, _ = headers[HeaderCommand].(string)
	d.Operation, _ = headers[HeaderOperation].(string)
	d.Offset = Int(headers, HeaderOffset)
	d.Epoch = Int(headers, HeaderEpoch)
	d.Seq = Int(headers, HeaderSeq)
	d.Confirmed = Int(headers, HeaderConfirmed)
	return d, true
}

// Burial tells whether the deed sent a job to dead_jobs, not to its queue.
func (d Deed) Burial() bool { return d.Op == OpBuried || d.Op == OpExpired }

// Int reads a whole number from a header; 0 if there is none.
func Int(headers map[string]any, name string) int64 {
	n, _ := headers[name].(int64)
	return n
}

// JIDTag is how headers and journal records name a jid: itself, or its hash where a header could not hold it.
func JIDTag(jid string) string {
	if jid == ASCII(jid) {
		return jid
	}
	sum := sha256.Sum256([]byte(jid))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ASCII is s as a header can hold it: printable ASCII, at most 255 bytes; what else there is becomes "?".
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

// Fire is a job on its way to its queue and to the journal.
func Fire(job *Job, d Deed, body []byte, now time.Time) Message {
	return Message{
		Exchange: ExchangeFire, Key: job.Queue, MessageID: job.JID, Type: job.Class,
		Priority: job.Priority, Timestamp: now, Headers: d.Headers(), Body: body,
	}
}

// Bury is a dead job on its way to dead_jobs and to the journal.
func Bury(job *Job, d Deed, body []byte, now time.Time) Message {
	return Message{
		Exchange: ExchangeBury, Key: DeadJobs, MessageID: job.JID, Type: job.Class, Timestamp: now, Headers: d.Headers(), Body: body,
	}
}

// Carry is an entry on its way to a later offset of its own stream, before retention takes it.
func Carry(stream, jid string, record []byte, headers map[string]any) Message {
	return Message{Key: stream, MessageID: jid, Headers: headers, Body: record}
}

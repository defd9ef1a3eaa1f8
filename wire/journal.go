package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Everything is the offset that holds a whole entry stream, while it is not known up to which
// offset the stream must be held.
const Everything = 1<<53 - 1

// JournalRecord is one JSON record of the journal. Type says which members matter.
type JournalRecord struct {
	Type  string  `json:"type"`
	At    float64 `json:"at"`
	Epoch int64   `json:"epoch,omitempty"`

	// opened
	Format         int              `json:"format,omitempty"`
	Identity       string           `json:"identity,omitempty"`  // also confirmed, with Ended
	LowWater       map[string]int64 `json:"low_water,omitempty"` // also low-water
	Needs          int64            `json:"needs,omitempty"`     // also low-water
	Held           map[string]int64 `json:"held,omitempty"`      // also released: what stays held
	KnownConfirmed *Confirmed       `json:"known_confirmed,omitempty"`
	Probe          string           `json:"probe,omitempty"` // exclusive queue of its probes
	// In opened, the offset after the newest record that the leader knew to be confirmed. In
	// low-water, the offset after the newest record that the leader had read. Never above the
	// offset of the record itself.
	ReadTo int64 `json:"read_to,omitempty"`

	Queue   string `json:"queue,omitempty"`   // rejected; in format 1 the witness
	Through int64  `json:"through,omitempty"` // confirmed
	Above   Ranges `json:"above,omitempty"`   // confirmed
	Ended   bool   `json:"ended,omitempty"`   // confirmed: who led this epoch does not act any more

	Witness string `json:"witness,omitempty"` // also opened, low-water: the current one
	// opened, low-water: the witness proves something only about fires after this one.
	WitnessFrom *Through `json:"witness_from,omitempty"`

	// opened, low-water, confirmed: all fires up to this offset of the journal arrived.
	RoutedTo *int64 `json:"routed_to,omitempty"`

	// The fire or burial that is returned, delivered or unburied. FiredEpoch is omitted if it is
	// this epoch.
	Seq        int64 `json:"seq,omitempty"`
	FiredEpoch int64 `json:"fired_epoch,omitempty"`

	// The entry that the record is about.
	Stream string `json:"stream,omitempty"`
	Offset int64  `json:"offset"`
	JID    string `json:"jid,omitempty"`

	// returned, unburied: the id of the command that asked for it, which may be repeated.
	TookBack string `json:"took_back,omitempty"`

	Reason  string          `json:"reason,omitempty"`
	Error   string          `json:"error,omitempty"`
	Actor   string          `json:"actor,omitempty"`
	Command string          `json:"command,omitempty"` // id of the command
	Entry   json.RawMessage `json:"entry,omitempty"`   // deleted, changed, killed: its bytes
	Sender  string          `json:"user_id,omitempty"` // deleted: see SenderOf
	By      *int64          `json:"by,omitempty"`      // changed, undone, enqueued: new entry
	Undoes  int64           `json:"undoes,omitempty"`  // undone: the undone record
	Dead    *int64          `json:"dead,omitempty"`    // undone: the dead job to remove
	DiedAt  float64         `json:"died_at,omitempty"` // killed: of the dead job
	Body    []byte          `json:"body,omitempty"`    // rejected: at most 64 KiB of it

	Read *int64 `json:"read,omitempty"` // barrier: how far the leader had read

	Below int64 `json:"below,omitempty"` // recreated: entries below are settled

	Entries []Trimmed `json:"entries,omitempty"` // trimmed
	Count   int64     `json:"count,omitempty"`   // trimmed

	InOperation string `json:"in_operation,omitempty"` // id of the bulk operation

	Paused *map[string]Pause `json:"paused,omitempty"` // state: all queues that are paused

	Enqueued *Enqueued  `json:"enqueued,omitempty"` // enqueued
	Keys     []Enqueued `json:"keys,omitempty"`     // state: keys below low water

	Operation *Operation `json:"operation,omitempty"` // operation, state

	Noted *Noted `json:"noted,omitempty"` // noted

	Defined   []Defined      `json:"defined,omitempty"`   // defined
	Ticks     []Tick         `json:"ticks,omitempty"`     // ticked
	Periodics *PeriodicPiece `json:"periodics,omitempty"` // state: some of the periodic jobs
	Limits    *LimitPiece    `json:"limits,omitempty"`    // state: all limits, and the rates that are in use
	Decisions []Decision     `json:"decisions,omitempty"` // decided
	Periods   []UniquePeriod `json:"periods,omitempty"`   // state: some of the keys that are taken for a time
	Queues    *QueuePiece    `json:"queues,omitempty"`    // state: some of the governed queues
	Restated  []Restated     `json:"restated,omitempty"`  // governed
	Slots     []HeldSlot     `json:"slots,omitempty"`     // state: some of the slots that are held; freed
}

// StandingWitness returns the witness in a record. Format 1 had the name of a queue in its place.
func (r *JournalRecord) StandingWitness() string {
	if r.Type == TypeRejected {
		return ""
	}
	return cmp.Or(r.Witness, r.Queue)
}

// Trimmed is a dead job that was dropped.
type Trimmed struct {
	Offset int64  `json:"offset"`
	JID    string `json:"jid"` // a JIDTag
}

// Append returns the record as a message to a stream. seq is the number of the record in its epoch.
// Append leaves out the entry's bytes if the record would be larger than MaxRecord. A reader then
// finds them in the entry's stream.
func (r JournalRecord) Append(stream string, seq, confirmed int64) Message {
	entry := r.Entry
	r.Entry = nil
	body, err := json.Marshal(r)
	if err != nil { // only NaN and infinities cannot be encoded
		panic(fmt.Sprintf("wire: journal record %s: %v", r.Type, err))
	}
	if with := withEntry(body, entry); len(with) <= MaxRecord {
		body = with
	}
	return Message{Key: stream, Type: r.Type, Body: body, Headers: map[string]any{
		HeaderFormat: int64(Format), HeaderEpoch: r.Epoch, HeaderSeq: seq, HeaderConfirmed: confirmed,
	}}
}

// withEntry adds an entry's bytes to a record unchanged. Marshal would reformat them.
func withEntry(record, entry []byte) []byte {
	if len(entry) == 0 {
		return record
	}
	return slices.Concat(trimClose(record), []byte(`,"entry":`), entry, []byte{'}'})
}

// ParseJournal parses a JSON record of the journal, or a barrier.
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

// JournalType returns the type of a JSON record of the journal, without parsing the rest of it.
func JournalType(body []byte) string { return gjson.GetBytes(body, "type").String() }

// Fire returns the message that sends a job to its queue and to the journal.
func Fire(job *Job, d Dispatch, body []byte, now time.Time) Message {
	return Message{
		Exchange: ExchangeFire, Key: job.Queue, MessageID: job.JID, Type: job.Class,
		Priority: job.Priority, Timestamp: now, Headers: d.Headers(), Body: body,
	}
}

// Bury returns the message that sends a dead job to dead_jobs and to the journal.
func Bury(job *Job, d Dispatch, body []byte, now time.Time) Message {
	return Message{
		Exchange: ExchangeBury, Key: DeadJobs, MessageID: job.JID, Type: job.Class, Timestamp: now, Headers: d.Headers(), Body: body,
	}
}

// Carry returns the message that appends an entry to its own stream again, before retention deletes
// it.
func Carry(stream, jid string, record []byte, headers map[string]any) Message {
	return Message{Key: stream, MessageID: jid, Headers: headers, Body: record}
}

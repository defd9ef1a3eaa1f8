package scheduler

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// consumeDeadLetters makes dead jobs of dead letters, as long as the connection lives.
func (s *Scheduler) consumeDeadLetters(ctx context.Context, conn *broker.Conn) error {
	bad := badBodies{}
	return s.keepRunning(ctx, conn, "burying", func(ctx context.Context) error { return s.consumeFrom(ctx, conn, wire.DeadLetters, bad) })
}

// consumeFrom turns the messages of one queue into dead jobs.
func (s *Scheduler) consumeFrom(ctx context.Context, conn *broker.Conn, queue string, bad badBodies) error {
	relay, err := openRelay(ctx, conn, queue, bad)
	if err != nil {
		return err
	}
	defer relay.close()
	relay.nacked = func(d wire.Delivery) {
		if !relay.from.Cancelled() {
			_ = pause.For(ctx, ledger.AgainAfter) // it comes again at once
		}
		relay.requeue(d)
	}
	err = relay.run(ctx, func(d wire.Delivery) error { return s.buryLetter(relay, d) }, nil, nil)
	return errors.Join(err, relay.rescue(ctx, s, conn, s.orphanedLetter))
}

func (s *Scheduler) buryLetter(relay *relay, d wire.Delivery) error {
	if relay.bad.isBad(d) {
		return relay.forward(d, s.rejection(wire.DeadLetters, errRefusedTwice.Error(), d.Body))
	}
	switch known, err := s.isBuried(d); {
	case err != nil:
		return err
	case known:
		return relay.ack(d)
	}
	return relay.forward(d, s.deadJob(d))
}

// orphanedLetter is what becomes of a dead letter whose queue is gone.
func (s *Scheduler) orphanedLetter(d wire.Delivery) (m wire.Message, some bool) {
	if known, err := s.isBuried(d); known && err == nil {
		return m, false
	}
	return s.deadJob(d), true
}

// deadJob is what becomes of a dead-lettered message.
func (s *Scheduler) deadJob(d wire.Delivery) wire.Message {
	record, jid, err := deadRecord(d, time.Now())
	if err != nil {
		return s.rejection(wire.DeadLetters, err.Error(), d.Body)
	}
	s.setStatus(func(st *Status) { st.Counters.DeadLettered++ })
	trusted := s.entries.Trusts(&wire.Record{UserID: d.UserID})
	headers := headersOfDead(d, wire.ProvenanceOf(d.Headers, d.UserID, trusted))
	if slot, holds := d.Headers[wire.HeaderSlot].(string); holds && trusted { // the job has ended
		headers[wire.HeaderSlot] = slot
	}
	return wire.Message{Key: wire.DeadJobs, MessageID: jid, Timestamp: time.Now(), Headers: headers, Body: record}
}

// headersOfDead returns the headers of a dead job. They mark a job that a queue dropped by itself,
// because it was full or the message too old. There may be any number of those, and they must not
// push failed jobs out of the dead jobs.
func headersOfDead(d wire.Delivery, from wire.Provenance) map[string]any {
	headers := map[string]any{}
	if reason := deathOf(d).reason; reason == "maxlen" || reason == "expired" {
		headers[wire.HeaderDropped] = reason
	}
	from.AddTo(headers)
	return headers
}

var errRefusedTwice = errors.New("the broker closed the channel each time that it was published")

// isBuried reports whether a job is buried already: by a leader that ended before it could
// acknowledge, or from the other of two queues that both had the letter. A letter that comes twice
// need not be marked as redelivered.
func (s *services) isBuried(d wire.Delivery) (bool, error) {
	_, jid, err := deadRecord(d, time.Now())
	if err != nil {
		return false, nil //nolint:nilerr // it is no job, and never was buried
	}
	dead, err := s.entries.Find(wire.DeadJobs, jid)
	if err != nil {
		return false, err
	}
	for _, e := range dead {
		if record, _, err := deadRecord(d, e.At); err == nil && bytes.Equal(e.Raw, record) {
			return true, nil
		}
	}
	return false, nil
}

// deadRecord returns the record of a dead letter for dead_jobs. It is always the same for the same
// message, except for the time if the broker does not say when it died.
func deadRecord(d wire.Delivery, taken time.Time) (record []byte, jid string, err error) {
	if e, err := wire.ParseEntry(wire.DeadJobs, 0, d.Body); err == nil {
		return d.Body, e.JID, nil // a client sent its own envelope to jobs.dead
	}
	job, err := wire.ParseJob(d.Body)
	if err != nil {
		return nil, "", err
	}
	death := deathOf(d)
	jid = job.JID
	if jid == "" && !d.Redelivered { // several may be equal, and die in the same second
		jid = randomJID()
	}
	if jid == "" || len(jid) > maxDeadJID {
		jid = wire.DerivedJID(wire.OldDeadLetters, death.at.Unix(), d.Body)
	}
	if at := death.at; at.IsZero() || at.Year() < 1 || at.Year() > 9999 { // producers set any
		death.at = taken
	}
	envelope := wire.DeadEnvelope{JID: jid, DiedAt: death.at, Attempt: job.RetryCount, ErrorClass: death.reason, ErrorMessage: death.message()}
	body, err := wire.WithQueue(d.Body, death.queue)
	if err != nil {
		return nil, "", err
	}
	record = wire.DeadJob(envelope, body)
	if len(record) > wire.MaxRecord {
		envelope.ErrorMessage += fmt.Sprintf("; the job has %d bytes, too many to keep: its first 64 KiB are in first_bytes", len(d.Body))
		record = wire.DeadJob(envelope, stub(job, jid, d.Body))
	}
	return record, jid, nil
}

// maxDeadJID is the longest jid that a dead job keeps: it is written several times.
const maxDeadJID = 4096

// stub stands for a job that is too large to be kept.
func stub(job wire.Job, jid string, body []byte) []byte {
	const kept = 64 << 10
	class := strings.ToValidUTF8(job.Class[:min(len(job.Class), maxDeadJID)], "")
	raw, err := json.Marshal(map[string]any{"jid": jid, "class": class, "queue": job.Queue, "args": []any{}, "truncated": true,
		"first_bytes": base64.StdEncoding.EncodeToString(body[:kept])})
	if err != nil { // strings marshal
		panic(fmt.Sprintf("scheduler: stub: %v", err))
	}
	return raw
}

// death is what the broker says of why and when it dead-lettered a message.
type death struct {
	reason string
	queue  string
	at     time.Time // zero if it does not say
}

func deathOf(d wire.Delivery) death {
	out := death{reason: "dead-lettered", at: d.Timestamp, queue: d.Key}
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) == 0 {
		return out
	}
	latest, _ := deaths[0].(map[string]any)
	if reason, ok := latest["reason"].(string); ok {
		out.reason = reason
	}
	if queue, ok := latest["queue"].(string); ok && strings.HasPrefix(queue, wire.QueuePrefix) {
		out.queue = strings.TrimPrefix(queue, wire.QueuePrefix)
	}
	if at, ok := latest["time"].(time.Time); ok {
		out.at = at
	}
	return out
}

func (d death) message() string {
	switch d.reason {
	case "rejected":
		return fmt.Sprintf("a worker rejected the job in queue %q", d.queue)
	case "expired":
		return fmt.Sprintf("the job expired in queue %q before a worker took it", d.queue)
	case "maxlen":
		return fmt.Sprintf("queue %q was full and dropped the job", d.queue)
	case "delivery_limit":
		return fmt.Sprintf("the job was delivered too often in queue %q without an end", d.queue)
	}
	return fmt.Sprintf("the broker dead-lettered the job (%s)", d.reason)
}

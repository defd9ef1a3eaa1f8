package scheduler

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A job that is enqueued under a key is an entry of scheduled_jobs, due now if no time is given.
// The entry itself names the key. When the view has read it, the leader journals the key, and
// answers when that is read back. If the leader ends in between, the next one journals it before it
// takes commands.

// maxEnqueuing is how many may be on their way.
const maxEnqueuing = 1024

// enqueues appends the jobs that are enqueued under keys.
type enqueues struct {
	base
	carry     *carrier
	enqueuing map[string]*enqueuing // by key
	opened    int64                 // the newest number when the epoch began to take commands
}

// enqueuing is a job on its way under a key.
type enqueuing struct {
	sent      *ledger.Publish
	journaled bool
	sum       string
	jid       string
	answers   []func(wire.Reply)
}

// open notes up to which number the keys of earlier leaders are journaled.
func (q *enqueues) open(time.Time) error {
	q.opened = q.ledger.Seq()
	return nil
}

// command enqueues a job when the keys of earlier leaders are known.
func (q *enqueues) command(_ time.Time, r request) error {
	return q.ledger.AfterFold(q.opened, func() error { return q.enqueue(q.ledger.Now(), r) })
}

// enqueue enqueues a job once, however often it is asked for under the same key.
func (q *enqueues) enqueue(now time.Time, r request) error {
	cmd := &r.cmd
	if q.carry.rests() { // keys are being written again
		q.ledger.NextStep(func() error { return q.enqueue(q.ledger.Now(), r) })
		return nil
	}
	if under := q.enqueuing[cmd.Key]; under != nil {
		if under.sum != cmd.Sum() {
			return r.reply(otherJob)
		}
		under.answers = append(under.answers, r.answer)
		return nil
	}
	known, err := q.entries.Enqueued(cmd.Key, now)
	switch {
	case err != nil:
		return err
	case known != nil && known.Sum != cmd.Sum():
		return r.reply(otherJob)
	case known != nil:
		return r.reply(wire.Reply{Status: wire.StatusOK, JID: known.JID})
	case len(q.enqueuing) >= maxEnqueuing:
		return r.reply(unavailable("too many jobs are being enqueued: nothing was done, try again"))
	}
	return q.enqueueNew(now, r)
}

var otherJob = conflict("another job was enqueued under this key within the last day")

// enqueueNew appends the entry of a job whose key is new.
func (q *enqueues) enqueueNew(now time.Time, r request) error {
	cmd := &r.cmd
	record, e, err := cmd.Entry(now, random())
	if err != nil {
		return r.reply(badRequest(err.Error()))
	}
	a := wire.Announcement{What: wire.OpEnqueued, Stream: wire.ScheduledJobs, Key: cmd.Key, Sum: cmd.Sum(), Actor: cmd.Actor}
	headers := a.Headers(q.ledger.Epoch())
	under := &enqueuing{sum: a.Sum, jid: e.JID, answers: []func(wire.Reply){r.answer}}
	under.sent = &ledger.Publish{Plain: true, Returned: indeterminate(""), Size: len(record), Build: func(int64, int64) wire.Message {
		return wire.Carry(wire.ScheduledJobs, e.JID, record, headers)
	}}
	err = q.ledger.Send(under.sent)
	if errors.Is(err, broker.ErrUnpublishable) {
		return r.reply(badRequest(err.Error()))
	}
	if err != nil {
		return err
	}
	q.enqueuing[cmd.Key] = under
	return nil
}

// journal journals the key of a job, and answers when the view has read that: only then is the key
// known.
func (q *enqueues) journal(now time.Time, a wire.Announcement) error {
	by := a.Offset
	e := wire.Enqueued{Key: a.Key, Sum: a.Sum, JID: a.JID, At: wire.Seconds(now)}
	r := wire.JournalRecord{Type: wire.OpEnqueued, Stream: a.Stream, Offset: a.Offset, By: &by, JID: a.JIDTag, Actor: a.Actor, Enqueued: &e}
	return q.ledger.RecordThen(now, r, ledger.EntryID{}, func() error {
		under := q.enqueuing[a.Key]
		if under == nil {
			return nil
		}
		delete(q.enqueuing, a.Key)
		for _, answer := range under.answers {
			answer(wire.Reply{Status: wire.StatusOK, JID: a.JID, Entry: &by})
		}
		return nil
	})
}

// keysAtOnce is how many keys one record has.
const keysAtOnce = 500

// carryOver writes again the keys that low water would forget.
func (q *enqueues) carryOver(now time.Time) error {
	var all []wire.Enqueued
	err := q.entries.EachEnqueued(func(e wire.Enqueued) bool {
		all = append(all, e)
		return true
	})
	if err != nil {
		return err
	}
	for keys := range slices.Chunk(all, keysAtOnce) {
		if err := q.ledger.Record(now, wire.JournalRecord{Type: wire.TypeState, Keys: keys}, ledger.EntryID{}); err != nil {
			return err
		}
	}
	return nil
}

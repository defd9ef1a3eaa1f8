package tracker

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Act is a record of the journal that tells what was done, by whom and why. That a job was fired when it was due is none: there are as many of
// those as there are jobs.
type Act struct {
	Record    int64 // its offset in the journal
	At        float64
	Op        string
	Stream    string
	Offset    int64  // of the entry
	JID       string // as in headers: wire.JIDTag
	Queue     string // paused, resumed, and what is noted of queues
	To        string // moved: the other queue
	Identity  string // quieted, stopped, cancelled: of the worker process; "*": all
	Actor     string // empty: nobody asked for it
	Reason    string // why, or what the broker said
	Operation string // the id of the bulk operation that it is, or is part of
	Action    string // of an operation
	State     string // of an operation: running as it begins, else how it ended
	Count     int64  // trimmed: how many; of a queue, how many jobs waited
}

// Two lists of acts are kept: a bulk operation, or a queue that refuses jobs, must not push out what somebody did with a single click.
const (
	actsSingle = 'A'
	actsMany   = 'B' // parts of operations, enqueued under a key, and what nobody asked for
	maxActs    = 100_000
)

// Ops of acts that are not also records' types.
const (
	ActPaused  = "paused"
	ActResumed = "resumed"
)

// actDispatches are the fires and burials that are acts. Of a kill the record is one that follows.
var actDispatches = []string{wire.OpTriggered, wire.OpRetried, wire.OpRefired, wire.OpExpired}

// actTypes are the records that are acts, beside operations and pauses.
var actTypes = []string{wire.TypeReturned, wire.TypeRefused, wire.TypeDuplicate, wire.TypeExpired, wire.TypeDeleted, wire.TypeChanged, wire.TypeUndone,
	wire.TypeKilled, wire.TypeTrimmed, wire.TypeRecreated, wire.TypeMisrouted, wire.TypeReleased, wire.TypeDismissed, wire.OpEnqueued}

// actOfDispatch keeps a fire or burial that is an act.
func (t *Entries) actOfDispatch(tx *view.Tx, d *wire.Dispatch, h *wire.Happened, record int64) error {
	if !slices.Contains(actDispatches, d.Op) {
		return nil
	}
	return t.keepAct(tx, &Act{Record: record, At: h.At, Op: d.Op, Stream: d.Stream, Offset: d.Offset, JID: d.JIDTag, Actor: d.Actor, Operation: d.Operation})
}

// actOf keeps a record that is an act.
func (t *Entries) actOf(tx *view.Tx, j *wire.JournalRecord, record int64) error {
	a := &Act{Record: record, At: j.At, Op: j.Type, Stream: j.Stream, Offset: j.Offset, JID: j.JID, Actor: j.Actor, Operation: j.InOperation, Count: j.Count}
	if a.Reason = j.Reason; j.Error != "" {
		a.Reason = j.Error
	}
	switch {
	case wire.SettlesLease(j.Command): // workers do that, and as often as they work
		return nil
	case slices.Contains(actTypes, j.Type):
		return t.keepAct(tx, a)
	case j.Type == wire.TypeState && j.Paused != nil && j.Queue != "":
		a.Op, a.Queue = ActResumed, j.Queue
		if _, is := (*j.Paused)[j.Queue]; is {
			a.Op = ActPaused
		}
		return t.keepAct(tx, a)
	case j.Type == wire.TypeNoted && j.Noted != nil:
		a.Op, a.Queue, a.To, a.Identity, a.Count = j.Noted.Op, j.Noted.Queue, j.Noted.To, j.Noted.Identity, j.Noted.Count
		if j.Noted.JID != "" {
			a.JID = wire.JIDTag(j.Noted.JID)
		}
		return t.keepAct(tx, a)
	case j.Type == wire.TypeOperation && j.Operation != nil:
		return t.actOfOperation(tx, a, j.Operation)
	}
	return nil
}

// actOfOperation keeps how an operation begins and how it ends, but not how it goes on.
func (t *Entries) actOfOperation(tx *view.Tx, a *Act, op *wire.Operation) error {
	if begins := op.Action != ""; !begins && op.State == wire.OperationRunning {
		return nil
	}
	a.Operation, a.State = op.ID, op.State
	if op.Action == "" { // as it goes on it does not say again what it is
		op = cmp.Or(t.operations.all[op.ID], &wire.Operation{})
	}
	a.Action, a.Stream, a.Actor, a.Reason = op.Action, op.Stream, op.Actor, op.Reason
	return t.keepAct(tx, a)
}

func (a *Act) list() byte {
	if a.Op == wire.TypeOperation || a.Actor != "" && a.Operation == "" && a.Op != wire.OpEnqueued {
		return actsSingle
	}
	return actsMany
}

func keyAct(list byte, record int64) []byte { return appendInt([]byte{tableAct, list}, record) }

// keepAct keeps an act, and forgets the oldest of its list when there are too many.
func (t *Entries) keepAct(tx *view.Tx, a *Act) error {
	list := a.list()
	size := t.rings.size[list]
	if a.At == 0 { // a fire of which the transport does not tell when it was: just after what came before it
		var err error
		if a.At, err = t.lastActAt(tx); err != nil {
			return err
		}
	}
	if size.count++; size.count > t.maxActs {
		if err := t.forgetOldestActs(tx, list, &size); err != nil {
			return err
		}
	}
	t.rings.set(list, size)
	return tx.Set(keyAct(list, a.Record), a.encode())
}

// eachAct gives the acts of a list between two keys, until each has enough.
func eachAct(r view.Reader, lower, upper []byte, newest bool, each func(key []byte, a *Act) (more bool)) error {
	var fault error
	err := r.Scan(lower, upper, newest, func(key, value []byte) bool {
		var a *Act
		if a, fault = decodeAct(key, value); fault != nil {
			return false
		}
		return each(key, a)
	})
	return cmp.Or(err, fault)
}

// forgetOldestActs forgets a sixty-fourth of a list at once: looking for the oldest costs more than keeping one.
func (t *Entries) forgetOldestActs(tx *view.Tx, list byte, size *ringSize) error {
	var last *Act
	var keys [][]byte
	err := eachAct(tx, keyAct(list, int64(size.from)), after([]byte{tableAct, list}), false, func(key []byte, a *Act) bool {
		keys, last = append(keys, slices.Clone(key)), a
		return uint64(len(keys)) <= t.maxActs/64
	})
	if err != nil || last == nil {
		return err
	}
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	size.count, size.from = size.count-uint64(len(keys)), uint64(last.Record)+1
	return tx.Set([]byte{tableMeta, list, 't'}, binary.BigEndian.AppendUint64(nil, math.Float64bits(last.At)))
}

// firstAct is the oldest act of a list, lastAct the newest; nil if there is none.
func firstAct(r view.Reader, list byte) (*Act, error) { return oneAct(r, list, false) }
func lastAct(r view.Reader, list byte) (*Act, error)  { return oneAct(r, list, true) }

func oneAct(r view.Reader, list byte, newest bool) (found *Act, err error) {
	err = eachAct(r, []byte{tableAct, list}, after([]byte{tableAct, list}), newest, func(_ []byte, a *Act) bool {
		found = a
		return false
	})
	return found, err
}

// lastActAt is when the newest act was.
func (t *Entries) lastActAt(tx *view.Tx) (at float64, err error) {
	for _, list := range []byte{actsSingle, actsMany} {
		a, err := lastAct(tx, list)
		if err != nil {
			return 0, err
		}
		if a != nil {
			at = max(at, a.At)
		}
	}
	return at, nil
}

// forgetActs forgets all acts: they are named by offsets of a journal that is gone.
func (t *Entries) forgetActs(tx *view.Tx) error {
	for _, list := range []byte{actsSingle, actsMany} {
		t.rings.set(list, ringSize{})
		if err := tx.Delete([]byte{tableMeta, list, 't'}); err != nil {
			return err
		}
	}
	return tx.DeleteRange([]byte{tableAct}, after([]byte{tableAct}))
}

// maxActText is how much of a reason is kept, in bytes; the journal has all of it.
const maxActText = 1000

// texts are its short ones, in the order in which they are kept.
func (a *Act) texts() []*string {
	return []*string{&a.Op, &a.Stream, &a.JID, &a.Queue, &a.To, &a.Identity, &a.Actor, &a.Operation, &a.Action, &a.State}
}

func (a *Act) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 128), math.Float64bits(a.At))
	b = binary.AppendVarint(binary.AppendVarint(b, a.Offset), a.Count)
	for _, s := range a.texts() {
		b = appendText(b, *s)
	}
	return append(b, wire.Shorten(a.Reason, maxActText)...)
}

func decodeAct(key, b []byte) (*Act, error) {
	if len(key) != 2+intLen || len(b) < 8 {
		return nil, errDamagedAct
	}
	a := &Act{Record: intOf(key[2:]), At: math.Float64frombits(binary.BigEndian.Uint64(b))}
	d := decoder{b: b[8:]}
	a.Offset, a.Count = d.int(), d.int()
	for _, s := range a.texts() {
		*s = d.text()
	}
	if d.bad {
		return nil, errDamagedAct
	}
	a.Reason = string(d.b)
	return a, nil
}

var errDamagedAct = fmt.Errorf("tracker: what was done is damaged")

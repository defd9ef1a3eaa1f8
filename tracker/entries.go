package tracker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Schema is the version of the tables that Entries writes. A store with another version is rebuilt.
const Schema = 27

// Entries folds all streams that Millrace reads. It routes each record to the fold that takes it
// in. Others get its Reader, which cannot write.
type Entries struct {
	*Reader
	store    *view.Store
	fold     *fold
	parts    []Part
	observer Observer
}

// NewEntries reads the state that the folds keep in memory. They obey only records of the trusted
// users.
func NewEntries(store *view.Store, trusted ...string) (*Entries, error) {
	trust := Trust{}
	for _, u := range trusted {
		if u != "" {
			trust[u] = true
		}
	}
	r := newReader(store, trust)
	t := &Entries{Reader: r, store: store, fold: newFold(r)}
	t.Add(t.fold.slots)
	return t, t.fold.load(store)
}

// Add makes a part take the records of its streams. Heartbeats and metrics that no part takes are
// checked, and not kept.
func (t *Entries) Add(p Part) { t.parts = append(t.parts, p) }

// SetObserver makes an observer see each record, except those of the journal that are not
// Millrace's.
func (t *Entries) SetObserver(o Observer) { t.observer = o }

// Fold takes in one record of any stream that Millrace reads.
func (t *Entries) Fold(tx *view.Tx, r *wire.Record) error {
	t.Shown.noteWritten(r)
	if err := t.foldStream(tx, r); err != nil {
		return err
	}
	if t.observer != nil && (r.Stream != wire.Journal || t.Trusts(r)) {
		t.observer.Observe(tx, r)
	}
	return nil
}

// foldStream has the fold of its stream take in a record. What is refused is listed.
func (t *Entries) foldStream(tx *view.Tx, r *wire.Record) error {
	fault, refused, err := r.Fault, r.Body, error(nil)
	switch p := t.partOf(r.Stream); {
	case r.Stream == wire.Journal:
		fault, err = t.fold.journal.fold(tx, r)
	case codes[r.Stream] != 0:
		fault, err = t.fold.streams.fold(tx, r)
	case p == nil && checks[r.Stream] == nil:
		return fmt.Errorf("tracker: no fold for stream %s", r.Stream)
	case fault != "":
	case p != nil:
		fault, refused, err = p.Fold(tx, r)
	default:
		if wrong := checks[r.Stream](r.Body); wrong != nil {
			fault = wrong.Error()
		}
	}
	if err != nil || fault == "" {
		return err
	}
	rejected := *r
	rejected.Body = refused
	return t.fold.rejects.record(tx, &rejected, fault)
}

// checks are for the streams whose records are not kept where no part takes them.
var checks = map[string]func(body []byte) error{wire.Heartbeats: wire.CheckHeartbeat, wire.JobMetrics: wire.CheckMetrics}

func (t *Entries) partOf(stream string) Part {
	for _, p := range t.parts {
		if slices.Contains(p.Streams(), stream) {
			return p
		}
	}
	return nil
}

// Commit writes the state that the folds keep in memory. It is shown when the batch is written.
func (t *Entries) Commit(tx *view.Tx) error {
	for _, p := range t.parts {
		if err := p.Commit(tx); err != nil {
			return err
		}
	}
	return t.fold.save(tx)
}

// Start implements view.Starter: a part may know which records need not be read.
func (t *Entries) Start(tx *view.Tx, stream string, last int64) (from int64, known bool, err error) {
	if s, ok := t.partOf(stream).(view.Starter); ok {
		return s.Start(tx, stream, last)
	}
	return -1, true, nil
}

// Forget implements view.Forgetter. An entry stream waits: its entries are void only when the
// leader has journaled that.
func (t *Entries) Forget(tx *view.Tx, stream string) (bool, error) {
	if p := t.partOf(stream); p != nil {
		if err := p.Forget(tx, stream); err != nil {
			return true, err
		}
		return true, t.fold.rejects.forget(tx, stream)
	}
	switch stream {
	case wire.Journal:
		return true, t.fold.forgetJournal(tx)
	case wire.Heartbeats, wire.JobMetrics:
		return true, t.fold.rejects.forget(tx, stream)
	}
	// A leader since the loss of the journal may never have known the old stream, and is right
	// about the new one.
	if t.fold.state.peek().Journals > 0 {
		return false, fmt.Errorf("%w: the journal was lost, and so was %s", view.ErrRebuild, stream)
	}
	return false, nil
}

// Overtaken implements view.Forgetter: retention deleted records before they were read. The
// journal begins again behind the hole. Fires in doubt may have been returned in the hole.
func (t *Entries) Overtaken(tx *view.Tx, stream string) error {
	t.fold.state.update(func(s *State) { s.overtaken(stream) })
	if stream != wire.Journal {
		return nil
	}
	t.fold.state.update(func(s *State) { s.JournalFirst, s.HeldAll = -1, false })
	return t.fold.lifecycle.returnAll(tx)
}

// Reload implements view.Reloader: the store was rolled back.
func (t *Entries) Reload() error {
	if err := t.fold.load(t.store); err != nil {
		return err
	}
	for _, p := range t.parts {
		if r, ok := p.(view.Reloader); ok {
			if err := r.Reload(); err != nil {
				return err
			}
		}
	}
	return nil
}

// LostEnd notes, in a view that is rebuilt, that the journal had records behind an offset. The
// journal itself does not say so.
func (t *Entries) LostEnd(end int64) error {
	err := t.store.Update(func(tx *view.Tx) error {
		t.fold.state.update(func(s *State) { s.Lost, s.LostAt = true, max(s.LostAt, end) })
		return t.Commit(tx)
	})
	if err != nil {
		return err
	}
	return t.store.Flush()
}

// fold is the fold over the entry streams and the journal. It alone writes the tables that a Reader
// reads. It has one type for each table, and one for each duty.
type fold struct {
	// The tables, each with its state in memory.
	state      *leadership
	entries    *entryTable
	awaited    awaited
	announced  *announcements
	numbers    *numbers
	rejects    *rejects
	outcomes   *outcomes
	operations *operations
	audit      *audit.Log
	pauses     *pauses
	definitions
	slots *slots

	// The duties.
	lifecycle *lifecycle
	journal   journalFold
	streams   entryFold
}

func newFold(r *Reader) *fold {
	governed := newGoverning(r.Governed)
	entries := newEntryTable(r.heads, r.Counts, r.Shown, governed)
	t := &fold{
		state: &leadership{shown: r.Shown}, entries: entries, awaited: awaited{}, numbers: &numbers{},
		announced: newAnnouncements(r.first),
		outcomes:  &outcomes{}, operations: &operations{BulkOperations: r.BulkOperations}, pauses: &pauses{r.Pauses}, definitions: definitions{newPeriodics(r.Periodics), newLimits(r.Limits), governed, entries},
		slots: &slots{trust: r.Trust, shown: r.Shown, governed: governed},
	}
	t.rejects = &rejects{t.state}
	t.slots.keys = t.entries.keys
	t.audit = audit.New(t.operations.get)
	t.lifecycle = &lifecycle{t.state, t.entries, t.awaited, t.slots}
	replaced := replacements{t.state, t.announced, t.outcomes, t.lifecycle}
	t.streams = entryFold{r.Trust, t.state, t.awaited, t.announced, t.lifecycle}
	t.journal = journalFold{
		trust: r.Trust, state: t.state, numbers: t.numbers, rejects: t.rejects, outcomes: t.outcomes, operations: t.operations, audit: t.audit,
		pauses: t.pauses, definitions: t.definitions, slots: t.slots, decisions: &decisions{t.state, t.entries.keys, t.outcomes, t.lifecycle}, lifecycle: t.lifecycle, replacements: replaced, lowWater: lowWater{t.state, t.entries, t.awaited, t.announced, t.rejects},
	}
	return t
}

// load reads the state that the tables keep in memory.
func (t *fold) load(r view.Reader) error {
	t.numbers.reset()
	for _, load := range []func(view.Reader) error{
		t.entries.load, t.awaited.load, t.announced.load, t.outcomes.load, t.operations.load, t.audit.Load, t.pauses.load, t.periodics.load, t.limits.load, t.governed.load, t.slots.load, t.entries.keys.load, t.state.load,
	} {
		if err := load(r); err != nil {
			return err
		}
	}
	return nil
}

// save writes the changes of a batch.
func (t *fold) save(tx *view.Tx) error {
	for _, save := range []func(*view.Tx) error{
		t.entries.counts.save, t.announced.save, t.outcomes.save, t.audit.Save, t.operations.save, t.numbers.save, t.slots.save, t.entries.keys.save,
	} {
		if err := save(tx); err != nil {
			return err
		}
	}
	t.entries.announce(tx)
	return t.state.save(tx)
}

// forgetJournal keeps the old journal's facts about entries, and forgets its offsets. Epochs are
// offsets too, and those of the new journal begin where the old ones did.
func (t *fold) forgetJournal(tx *view.Tx) error {
	for _, stream := range []string{wire.Journal, wire.Unrouted, wire.DeadLetters, wire.OldDeadLetters} { // all have offsets of the journal
		if err := t.rejects.forget(tx, stream); err != nil {
			return err
		}
	}
	if err := cmp.Or(t.outcomes.forget(tx), table.Clear(tx, tableEnqueued), t.operations.forget(tx), t.audit.Forget(tx), t.entries.keys.forgetPeriods(tx)); err != nil {
		return err
	}
	if err := cmp.Or(t.entries.ageDoubts(tx), t.entries.ageUnread(tx)); err != nil {
		return err
	}
	t.state.update(func(s *State) { *s = s.withoutJournal() })
	return nil
}

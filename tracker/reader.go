package tracker

import (
	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Reader reads what the fold wrote. It consists of small readers, so that others can get only those
// that they use. It is safe for concurrent use.
type Reader struct {
	Lookup
	Lists
	DoubtList
	RejectedRecords
	History
	Announcements
	EnqueuedKeys
	Positions
	*Counts
	*Shown
	*BulkOperations
	*Pauses
	Trust
	Defined
	Audit audit.Reader
}

// Defined is what users define, and the slots that limits count.
type Defined struct {
	Periodics *PeriodicJobs
	Limits    *Limits
	Governed  *GovernedQueues
	Slots     Slots
	Unique    UniqueKeys
}

func newReader(store *view.Store, trust Trust) *Reader {
	shown := &Shown{ready: map[string]Ready{}, written: map[string]int64{}}
	governed := newGovernedQueues()
	return &Reader{
		Lookup: Lookup{store, &governed.rules}, Lists: Lists{store, &listHeads{}, &governed.rules}, DoubtList: DoubtList{store, shown, &governed.rules}, RejectedRecords: RejectedRecords{store, shown},
		History: History{store}, Announcements: Announcements{store, &firstAnnounced{at: map[code]int64{}}}, EnqueuedKeys: EnqueuedKeys{store}, Positions: Positions{store},
		Counts: &Counts{}, Shown: shown, BulkOperations: &BulkOperations{store: store}, Pauses: &Pauses{}, Defined: Defined{&PeriodicJobs{}, &Limits{store: store}, governed, Slots{store}, UniqueKeys{store}}, Trust: trust,
		Audit: audit.NewReader(store, shown.journalBegin),
	}
}

// Positions are how far streams were folded.
type Positions struct{ store *view.Store }

// Position returns the offset up to which a stream has been folded.
func (p Positions) Position(stream string) (int64, error) { return p.store.Position(stream) }

// ConfirmedTo returns the offset behind the journal's newest record that is known to be confirmed.
// A journal that ends before it has lost something that was promised to be kept.
func (p Positions) ConfirmedTo() (int64, error) {
	at, err := p.store.Confirmed(wire.Journal)
	return at + 1, err
}

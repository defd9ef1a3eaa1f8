// Package tracker folds streams into the state of all jobs.
//
// Entries is the fold over the entry streams and the journal. It routes each record to the part
// that takes it in, and it alone writes. A Reader reads what it wrote. It consists of small
// readers, such as Lookup, Lists and Counts.
//
// # Entries
//
// Three facts about an offset of an entry stream decide what is there. One stream alone says each
// of them:
//
//   - It is an entry: its stream says so.
//   - It was replaced: its stream says so, by a later entry.
//   - It was settled: the journal says so, in its own order.
//
// An entry that is neither settled nor replaced is in one of these states:
//
//	            fired, buried
//	pending ──────────────────▶ in doubt ──▶ settled: confirmed, or proven by a later leader
//	  ▲  │                         │
//	  │  └─▶ settled, replaced     │ returned
//	  └────────────────────────────┘
//
// In each state:
//
//   - A pending entry is listed. If it is parked, the broker cannot take its job, and it does not
//     fire by itself.
//   - An entry in doubt was fired or buried: the journal says so, which does not mean that the
//     queue has the job. It is kept with its body, and is not listed.
//   - A settled entry is deleted, and so is a replaced one.
//
// A record of the journal may be read before the entry that it is about. Then a mark waits for the
// entry.
//
// # Structure
//
// A record goes one way through the files. entries.go chooses the fold. fold_entry.go and
// fold_journal.go decide what a record is, and fold_records.go what a JSON record of the journal
// does. lifecycle.go changes what an entry is. entrytable.go writes the entry, its mark, the lists
// and the counts.
//
// The fold has one type for each table: entries with their marks, lists and counts; outcomes; bulk
// operations; the audit log (package audit); rejected records. Duties work with them: the entry
// fold and the journal fold take in records, the lifecycle changes what entries are, low water
// forgets. The state in memory that others may read is in Shown, Counts, BulkOperations and
// Pauses, each with a lock; Lists and Announcements know where their rows begin. Package table has
// the codec and the bounded tables.
//
// # Guarantees
//
// The result does not depend on how the streams interleave, nor on where a view began to read.
// There are no clocks and no flags here: each choice is the leader's, and is in the journal.
//
// The effects of a batch are written in one transaction. They are shown in memory when it is
// written, so a reader finds in the store the effects of every record that it has seen. There are
// two exceptions: counts are never fewer than there are rows, and where rows begin is known before
// the first of them can be seen.
//
// Records are obeyed only if the broker vouches that a trusted user wrote them. A record of a
// leader that had been followed already is void, except its fires and confirms: they have happened.
//
// # Failures
//
// A record that is not understood, or not trusted, is kept in a bounded list of rejected records.
// It stops nothing. A damaged row ends the view with an error.
//
// If the journal was lost, its facts about entries stay, and its offsets are forgotten. If an entry
// stream was created again, its entries are dropped when the journal says so.
package tracker

// Package view is the fold engine: it reads streams and keeps what they say in a store.
//
// A view is made of a Source (streams), a Fold (what each record means) and a Store (an embedded Pebble database). A batch of records
// and the position that they bring the view to are written together or not at all, so each record is folded exactly once, whenever
// the process dies. The store has no log of its own: it is a cache. Losing it, or a part of its newest writes, only means reading
// again.
//
// At every connection the last record that was folded is asked for again and compared. What does not fit is never read as "nothing
// was done": the fold is told of records that retention took (Forgetter.Overtaken) and of a journal that was made anew (Forget); an entry
// stream that was deleted and made anew stops being read until the leader has journaled that (Tx.Rewind). Older records are compared to
// tell such a stream from one that lost its newest records to a power failure: then the view ends, to be built anew (ErrRebuild), with
// word of it if the journal is such a stream (LostEndError).
package view

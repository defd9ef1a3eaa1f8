// Package view folds streams into a store.
//
// A view consists of a Source (the streams), a Fold (the meaning of each record) and a Store (an
// embedded Pebble database). A batch of records and the position behind it are written together or
// not at all. So each record is folded exactly once, no matter when the process dies.
//
// The store is a cache and has no write-ahead log. If the store or its newest writes are lost, the
// view reads the records again.
//
// # States
//
// Each stream has a reader. Its states have the names that Goka gives them:
//
//	connecting ─▶ catching up ─▶ running
//	    ▲               │  ▲        │ │
//	    │               │  └────────┘ │ the stream is read again (Rewind, rollback)
//	    ├───────────────┴─────────────┘ the reader ended
//	    ▼
//	 missing
//
// A reader connects until it knows where the stream ends. It catches up until the view has folded
// all that the stream had then, and has seen that the stream is the one that was read before. A
// stream is missing while the broker says that it does not exist.
//
// What a stream is, compared with the one that was read before, does not depend on the reader's
// state: it is the original, emptied or recreated. A connection that is lost does not change that.
//
// # Resuming
//
// A reader that connects asks for the last folded record again, and compares it:
//
//	connect ─▶ compare ─ the same record ─▶ follow
//	   ▲          │                            │
//	   │          └ another record, or none    │ connection lost
//	   │                   ▼                   │
//	   └───────────── identify, act ◀──────────┘
//
// A reader that stays connected compares offsets. If a record does not follow the last one, the
// view asks the stream's leader what is between.
//
// If the stream does not fit, the view never concludes that nothing was done. It compares older
// records, which the store keeps for this purpose, and acts on the result:
//
//   - Retention deleted records that were not read yet. The fold is informed (Forgetter.Overtaken),
//     and reading continues behind the hole.
//   - The stream was deleted and created again. The fold forgets the old one (Forgetter.Forget). A
//     new journal is read immediately. A new entry stream is read when the leader has journaled the
//     change (Tx.Rewind).
//   - The stream lost its newest records in a failover or a power failure, but none that is known
//     to be confirmed. The view is rolled back to a checkpoint from before these records.
//   - The journal lost records that are known to be confirmed. The view is rebuilt, and the error
//     says so (LostEndError).
//   - It is too soon after a failover to know. The reader connects again. The view believes that a
//     stream ends too early only after 30 seconds.
//
// # Failures
//
// Run connects again after every failure of a stream. It returns an error when the store or the
// fold fails. It returns ErrRebuild when the store cannot be brought back to a correct state: the
// store is emptied when it is opened next.
package view

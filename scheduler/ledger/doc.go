// Package ledger keeps account of what a leader publishes in one epoch.
//
// # Purpose
//
// A leader never waits for the broker. It publishes, and later learns what became of that, in
// three steps:
//
//		sent ──▶ confirmed ──▶ folded
//		  │          the broker has it   the view of this leader has read its record
//		  └────▶ refused, or without an answer
//
//	  - A record of the journal has a number. Numbers count from 1 in each epoch. The watermark is
//	    the number up to which nothing is open; each publish carries it, so the journal says which
//	    fires are confirmed.
//	  - A window bounds how much is unconfirmed. What has no answer for long is set aside, and
//	    leaves the window to others.
//	  - The entry that a publish is about is busy until the view has folded the record of it.
//	    Nothing else is done to it before that.
//
// # Guarantees
//
// Numbers are sent in their order, without a gap. The watermark never passes a number that is
// open. What waits for a fold, see AfterFold, is called in a step and in the order in which it
// began to wait.
//
// # Failures
//
// A record that the broker refuses is published again, under a new number. What becomes of other
// publishes that are refused their senders decide: see Publish.Returned. A ledger does no I/O but
// through its Port, and is not safe for concurrent use.
package ledger

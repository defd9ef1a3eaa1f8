// Package ledger keeps account of what a leader publishes in one epoch.
//
// A leader never waits for the broker. It publishes, and learns later what became of that:
//
//	sent ──▶ confirmed: the broker has it ──▶ folded: the leader's view has read its record
//	  └────▶ refused, or without an answer
//
// The account has three parts:
//
//   - A record of the journal has a number. Numbers count from 1 in each epoch. The watermark is
//     the number up to which nothing is open. Each publish carries it, so the journal says which
//     fires are confirmed.
//   - A window bounds how much is unconfirmed. What has no answer for long is set aside, so that
//     it takes no room from others.
//   - The entry that a publish is about is busy until the view has folded its record. Nothing
//     else is done to the entry before that.
//
// # Guarantees
//
// Numbers are sent in order and without a gap. The watermark never passes a number that is open.
// What waits for a fold (AfterFold) is called in a step, in the order in which it began to wait.
//
// # Failures
//
// A record that the broker refuses is published again, under a new number. For other publishes
// the sender decides: see Publish.Returned. A Ledger does no I/O except through its Port, and is
// not safe for concurrent use.
package ledger

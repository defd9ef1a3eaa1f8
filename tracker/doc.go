// Package tracker keeps what is known, each thing as a fold over streams.
//
// Entries folds the entry streams and the journal into what is pending, doubtful and rejected. Three facts about each offset of an
// entry stream decide, each told by one stream alone: it is an entry (that stream); it was replaced (that stream, by a later entry);
// it is settled (the journal, in its own order). Pending is what is an entry and neither settled nor replaced. So the result does not
// depend on how the streams interleave, and nothing here looks at a clock or a flag: whatever looks like a choice is the leader's, and
// journaled.
//
// A fire or burial makes its entry doubtful: the journal has it, which does not mean that the queue has it. It stays, with its body,
// until a record says that it was confirmed, or that it came back, or a later leader settles it.
//
// Records are obeyed only if the broker vouches that a trusted user wrote them. What is not understood, or not trusted, is kept in a
// bounded list of rejected records.
package tracker

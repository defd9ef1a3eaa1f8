// Package audit keeps the audit log: what was done, by whom and why.
//
// A Log writes. It is part of the fold over the journal: each entry is a record of the journal,
// made shorter. A fire of a job that was due is no entry, because there are as many of those as
// there are jobs. A Reader reads.
//
// # Bounds
//
// There are two lists, each with a bound of its own: a bulk operation, or a queue that refuses
// jobs, must not push out what a user did with a single click. A Reader reports where older entries
// may be missing.
package audit

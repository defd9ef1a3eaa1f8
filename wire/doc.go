// Package wire holds what stands on the broker: names, formats, records.
//
// It is pure: no I/O, no clock, nothing of Millrace's own imported. Everything that reads or writes a message, in whichever
// direction, goes through here, so that the format has one definition. docs/wire-format.md is the same thing in prose.
//
// Promises: a record is either understood whole or refused with a reason that a person can act on; a job's bytes are its owner's
// and leave exactly as they came, but for the members that Millrace must set, which are edited in place; no input panics, and none
// takes more than linear time.
package wire

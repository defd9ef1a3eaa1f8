// Package wire defines what is on the broker: the names of streams, exchanges and queues, and the
// formats of records, messages and headers. docs/wire-format.md says the same in prose.
//
// All code that reads or writes a message uses this package, so each format has one definition. The
// part that clients need is in clients/go/wire, the only package of Millrace that wire imports.
//
// Package wire does no I/O and reads no clock.
//
// # Promises
//
//   - The bytes of a job belong to its owner. They leave exactly as they came, except for the
//     members that Millrace must set. Those are edited in place.
//   - No input causes a panic.
//   - No input takes more than linear time.
//
// # Failures
//
// A record is either understood completely or refused. The error of a parse function is the reason
// of the rejected record. It says what is wrong, so that a person can correct the record and send
// it again.
//
// Two formats keep the good part of a bad record:
//
//   - ParseMetrics refuses single records of an array.
//   - ParseHeartbeat leaves out values that are not valid, because a worker that is partly
//     understood is better than one that is not shown.
package wire

// Package wire holds what the Go client and the sidecar share of the formats on the broker: names, jobs, and the records that
// workers write.
//
// Like the sidecar's package wire, which uses it and keeps its promises, it is pure: no I/O, no clock. Programs that enqueue or run
// jobs have no need of it, and its names may change in any version. docs/wire-format.md is the same thing in prose.
package wire

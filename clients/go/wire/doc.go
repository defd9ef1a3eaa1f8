// Package wire defines what the Go client and the sidecar share of the formats on the broker:
// names, jobs, and the records that workers write. docs/wire-format.md says the same in prose.
//
// The sidecar's package wire uses this package, and the promises of both are the same. Package wire
// does no I/O and reads no clock.
//
// Programs that enqueue or run jobs do not need this package. Its names may change in any version.
package wire

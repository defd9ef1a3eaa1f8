// Package sidecar runs the real binary, `millrace serve`, as a process: for tests and benchmarks that need one which can be killed, frozen,
// and told a wrong time.
//
// Nobody has to say who they are: its API listens on this machine alone.
// A process dies with whoever started it, however that dies. Its API's address can be given, so that one which follows another is
// found where the first was.
package sidecar

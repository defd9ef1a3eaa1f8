// Package sidecar runs the real binary, `millrace serve`, as a process, for tests and benchmarks
// that must kill it, freeze it, or give it a wrong clock.
//
// The API of the process listens on this machine only, and requires no login.
//
// The process dies with the process that started it, even if that is killed. Config.Addr sets the
// address of its API, so that a new process can have the address of the one before it.
package sidecar

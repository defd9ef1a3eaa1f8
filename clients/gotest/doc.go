// Package gotest tests the Go client against real brokers.
//
// The client is a module of its own, which knows nothing of the sidecar. What these tests use
// beside it (brokers to test against, the topology that a sidecar leaves on them, and how a sidecar
// reads what workers write) is the sidecar's, so they are here and not beside the client. They use
// the client as any program does, through what it exports.
package gotest

// Package apiclient calls the REST API of a running sidecar, for commands of the same binary.
//
// # Promises
//
// The bodies of answers are returned byte for byte, so that programs get what the sidecar sent.
// No password or token is sent without TLS to another machine.
//
// # When things fail
//
// A refusal is an *Error, whose text is the API's reason. An address that cannot be used, or a file
// that cannot be read, is a fault of the command line (see package usage); the first request
// returns it. Nothing is tried again: a caller that wants to wait does so itself. An answer is read
// leniently (see Decode), because the sidecar may be of another version than the command.
package apiclient

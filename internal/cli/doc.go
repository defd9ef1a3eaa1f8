// Package cli has the commands that talk to a running sidecar over its REST API, and those that
// publish jobs to the broker as any producer does. Execute runs a command line.
//
// Every command is a struct that kong fills from flags, the environment and the configuration file,
// with a Run method. There is one file a noun. get.go has what all of them share: to
// ask for something and print it, and to have something done and say so.
//
// The types with JSON tags are the API's answers, as far as commands need them.
//
// # Promises
//
// With --output=json, yaml or ndjson a command prints the answer with all its members, also those
// that it does not know. A command that destroys something asks first (see output.Confirm).
//
// # When things fail
//
// The exit code is 2 if the command line or the configuration is at fault, and then nothing was
// done. It is 1 for every other error, and for a check that found something wrong. Errors go to
// standard error, and begin with "millrace: ".
package cli

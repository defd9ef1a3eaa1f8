//go:build race

package main

// tried are the tests that the race detector is for: those of commands that run until they are stopped. Parsing a command line takes a
// second under it, and happens in one goroutine.
const tried = `^Test(Serve|Sidecar|Sessions|Up|Worker|Looks|StreamListener)`

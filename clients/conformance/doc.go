// Command conformance tests client libraries. It starts their worker and producer programs against
// a private broker and a real sidecar, takes them through scenarios, and prints a table. README.md
// is the contract of the programs.
//
// A trial is one scenario with one language. It has its own virtual host, sidecar and processes,
// which are gone when it ends. It is judged by queues, streams and what the jobs did (their
// effects), and never by what a program prints.
//
// # Failures
//
// A language passes a scenario or fails it. Nothing is skipped.
//
// The suite also runs clients that are wrong on purpose (mistakes.go). Each must fail the scenario
// that is there for its mistake. Otherwise the suite fails.
package main

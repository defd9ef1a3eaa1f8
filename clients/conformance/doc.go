// Command conformance examines client libraries: it starts their worker and producer programs against a private broker and a real
// sidecar, takes them through scenarios, and prints a table. README.md is the contract of the programs.
//
// Judged is by queues, streams and what the jobs did (their effects), never by what a program prints. Each trial, a scenario with a
// language, has a virtual host, a sidecar and processes of its own; they are gone when it ends. A language fails a scenario, or
// passes: there is nothing in between, and nothing is skipped.
//
// Beside the languages there are clients that are wrong on purpose (mistakes.go): the scenarios that are there for their mistakes must fail
// with them, else the suite itself fails.
package main

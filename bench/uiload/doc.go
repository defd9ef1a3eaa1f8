// Command uiload is what `make bench-ui` looks at: a private broker and a sidecar with a great many entries, queues and processes, and jobs
// that go on. It says in one line of JSON on standard output where the sidecar is when all is there, and goes on until standard input ends.
package main

// Command uiload prepares the system that `make bench-ui` opens: a private broker, and a sidecar
// with very many entries, queues and processes, and a flow of jobs. When everything is ready, it
// writes the sidecar's address to standard output as one line of JSON. It continues until standard
// input ends.
package main

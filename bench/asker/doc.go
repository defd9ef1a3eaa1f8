// Command asker sends requests one after another. It reports how long each answer took, and how
// much of that was within the handler. It is a separate process, so that an answer does not wait
// for the benchmark's own clients, which are busy while jobs flow.
package main

// Command asker asks for pages one after the other and tells how long each took, and how much of that its handler. It is a process of its own, so that an answer does not wait
// for the benchmark's own clients, which are busy while jobs flow.
package main

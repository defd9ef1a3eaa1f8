// Package crashtest kills sidecars and brokers for real while entries fall due, and counts what arrives, by jid, with a plain consumer.
//
// A kill is SIGKILL. What is counted is what a client sees in the queue: the journal is read only to tell how many kills fell while
// fires were unconfirmed.
package crashtest

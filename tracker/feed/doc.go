// Package feed keeps the newest events of jobs for clients that watch.
//
// It observes the folded records and keeps the newest events in memory. It does so only while a
// client watches (Keep). A view that is built again, or a sidecar without such clients, pays one
// comparison a record. Events have numbers: a client that comes back asks for the events after the
// last that it has seen, and learns how many of them are no longer kept.
//
// The feed is a convenience, not a record: the journal and the streams are.
package feed

// Package feed is what happens to jobs, as it happens, for those who watch.
//
// It listens to what is folded and keeps the newest events in memory. It is told while somebody
// watches (Keep) and does nothing at other times, so a view that is built anew, or a sidecar at
// which nobody looks, pays one comparison a record. Events have numbers: whoever comes back asks
// for what came after the last that it had seen, and is told how many are not kept any more.
//
// The feed is a convenience, not a record: the journal and the streams are.
package feed

// Package metrics adds up what workers say of their jobs: by class and queue, for each minute, hour
// and day.
//
// A record counts in the minute, hour and day of its own timestamp, however late it is read. A sum
// has counts by outcome, run time in all, a mergeable sketch each of run and wait times, from which
// percentiles come within 1 %, and how many jobs came to their end at which attempt. All of it can
// be added in any order, and whole numbers stay whole, so every sidecar that has read the same has
// the same answers. Only of attempts it may know less: roll-ups of versions that did not count them
// have none.
//
// # Nothing counts twice
//
// Every record of job_metrics has an offset, and State.Through says up to which offset everything
// is counted. The leader publishes what ranges of offsets add up to (roll-ups) to a stream that is
// kept for years. A roll-up whose range begins where a view's knowledge ends is taken in its place;
// one whose range is known is left alone. So a roll-up that is repeated or late cannot count twice.
// A new view reads roll-ups first, and then only what came after them.
//
// The ranges (pieces) do not depend on who cuts them, or when: a piece ends before the record that
// would make it too large, or that belongs to a later day than its first. Each sidecar cuts them
// and keeps them until it reads their roll-up, so each leader can publish them. A view whose pieces
// do not fit the roll-ups starts over (the stream was created again, or it was away for longer than
// that is kept).
//
// # Bounds
//
// In one day 1,000 pairs of class and queue have sums of their own, and 16 error classes each; what
// comes beyond is counted as other. Minutes are kept for 72 hours, hours for 90 days, days for 5
// years. A timestamp that lies over a day ahead is refused.
//
// Sums are added up in memory and written about once a second; after a crash what was not written
// is read again.
package metrics

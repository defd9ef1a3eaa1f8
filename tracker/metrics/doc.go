// Package metrics adds up what workers report about their jobs: by class and queue, for each
// minute, hour and day.
//
// Metrics is the fold, which writes. A Reader answers queries.
//
// A record counts in the minute, hour and day of its own timestamp, no matter when it is read. A
// sum has:
//
//   - counts by outcome
//   - the total run time
//   - a mergeable sketch each of run and wait times; its percentiles are within 1 %
//   - how many jobs came to their end at which attempt
//
// All of it can be added in any order, and whole numbers stay whole. So every sidecar that has read
// the same records gives the same answers. The exception is attempts: roll-ups of versions that did
// not count them have none.
//
// # Nothing counts twice
//
// Every record of job_metrics has an offset, and everything below State.Through is counted. The
// leader publishes the sums of ranges of offsets (roll-ups) to a stream that is kept for years.
// A roll-up whose range begins where a view's knowledge ends is taken in place of its records. One
// whose range is known is ignored. So a roll-up that is repeated or late cannot count twice, no
// matter who wrote it. A new view reads roll-ups first, and then only the records behind them.
//
// These ranges are called segments. They do not depend on the sidecar, or on time: a segment ends
// before the record that would make it too large, or that belongs to a later day than its first.
// Each sidecar keeps its segments until it reads their roll-up, so any leader can publish them. A
// view whose segments do not fit the roll-ups starts over. Then the stream was created again, or
// the view was away for longer than records are kept.
//
// # Bounds
//
// On one day 1,000 pairs of class and queue have sums of their own, and 16 error classes each. The
// rest is counted as other. Minutes are kept for 72 hours, hours for 90 days, days for 5 years.
// A timestamp more than a day in the future is refused.
//
// Sums are added up in memory and written about once a second. After a crash, the records that were
// not written are read again.
package metrics

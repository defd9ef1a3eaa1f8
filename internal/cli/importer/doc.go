// Package importer enters jobs from lines of JSON, so that repeating a file doubles nothing.
//
// A job that is due or scheduled goes to the leader as the command enqueue, under a key that is
// made of the name of the import and the jid. A retry or a dead job is published to its entry
// stream, with the same bytes each time, unless it waits there already. If a list does not show it
// yet, it is published twice, and the scheduler drops the repeat when it delivers the first.
//
// # Promises
//
// A line is counted as entered when the leader has answered, or the broker has confirmed. The
// resume file is written after that, atomically. A process that is killed at any place leaves a
// resume file from which the import continues.
//
// Members of a job that the package does not read, and all digits of numbers, are entered byte for
// byte. At most three batches are in memory, each of at most 8 MiB and one line.
//
// # When things fail
//
// A line that cannot be a job is refused with a reason, and the import continues. So is a line that
// the leader refuses. If there is no leader, or no broker, a line is tried again until the patience
// ends. Then the import ends with an error, and can be repeated.
package importer

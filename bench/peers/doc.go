// Command peers does the same work with Millrace and with other job systems on this machine, and
// prints a table: limits per key, a rate, unique jobs, periodic jobs, and what becomes of them when
// a worker or a scheduler is killed.
//
// Each peer has a program below this directory, which does what package work says. Handlers write
// when jobs begin and end into a file, also if they are about to be killed. The benchmark counts in
// that file, and asks no peer what happened.
//
// # Failures
//
// If one row of a peer fails, the table says so and the others are measured. The command fails
// then.
package main

// Package crew has programs that publish jobs and work on them, and counts what they have written
// down: so it counts limited, unique and governed jobs from outside.
//
// The workers are Python programs with pika, which use no code of Millrace. They follow
// docs/client-contract.md, and may be killed at any time. Each writes a line to a file when a job
// begins and ends.
package crew

// Package chaos injects faults while entries fall due and commands run, and counts the jobs that
// arrive, by jid. It kills, freezes and disconnects sidecars, sets their clocks, kills brokers, and
// deletes queues and exchanges.
//
// # What counts
//
// The count is what a client sees in the queues. That client is a Python program with pika
// (testdata/count.py), which uses no code of Millrace. Delayed messages are counted by a plain AMQP
// client (application_test.go), which takes them from its own queues. Each job has an account
// (account_test.go) that says what must happen to it, including the leader's answers to commands.
// The journal only serves to see how many faults happened while fires were unconfirmed, or while
// the next leader was catching up or settling. The faults aim at such moments.
//
// # Repeating a run
//
// `make chaos` runs all scenarios and prints one table. The plan of each scenario comes from a
// seed: the actions, their order and the pauses. The exact moment of a fault does not, so a run
// that broke a promise may have to be repeated several times to break it again. `make test` runs
// four scenarios at a small size.
package chaos

// Package chaos kills, freezes and cuts off sidecars, sets their clocks, kills brokers and deletes what stands on them, while entries fall
// due and commands are under way, and counts what arrives, by jid.
//
// What is counted is what a client sees in the queues: one that is not Millrace's, a Python program with pika (testdata/count.py). Each job
// has an account (account_test.go) of what must become of it; what the leader answered to a command is part of that. The journal is read
// only to tell how many of the faults fell while fires were unconfirmed, or while the next leader was catching up or settling: the faults
// aim at such moments.
//
// `make chaos` runs all scenarios and prints one table. The plan of each comes from a seed: what is done, in which order, with which
// pauses. When exactly a fault meets the machine does not, so a run that broke a promise may have to be repeated to break it again.
// `make test` runs three scenarios at a small size.
package chaos

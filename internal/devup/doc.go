// Package devup is what `millrace up` runs: a private RabbitMQ, a sidecar beside it, and a demo
// worker with its traffic, to try Millrace out on one machine.
//
// # Promises
//
// The data of the broker and the view stay in one folder from one start to the next, unless a start
// is asked to be fresh. Only one `millrace up` uses the folder at a time. A port that is in use is
// not taken: the next free one is, and the welcome says which. The sidecar is a user of its own
// with the permissions that a sidecar has in production, and no more.
//
// # When things fail
//
// What is started last ends first. An interrupt, and a terminal that is closed, end all of it in
// order, which is no error. If the broker dies, everything ends with an error that says where its
// log is.
package devup

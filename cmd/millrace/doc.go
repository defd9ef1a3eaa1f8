// Command millrace is the sidecar and its tools, in one binary.
//
// Every command is a struct that kong fills from flags, the environment and the configuration file (cli.go), with a Run method in a
// file of its own. The commands that look and act (status, scheduled, job, journal and the like) are clients of a running sidecar's
// REST API. enqueue and schedule publish to the broker and need no sidecar; doctor asks the broker.
//
// look.go has what commands share that ask the API. print.go writes a result in the form that -o asks for, table.go writes tables,
// confirm.go asks before something is deleted. help.go, complete.go and man.go write help, completion and man pages from the
// command tree; examples.go has the examples that they show.
//
// run.go is the only place where the parts of the sidecar are wired together, and its defers are the order in which they end.
//
// # When things fail
//
// A broker that cannot be reached is waited for: the process stays up, says so in its log and in /readyz, and connects when the broker answers.
// Where waiting does not help (a wrong flag, an address in use, a state folder that another sidecar has, a broker that refuses the first login),
// the process ends with a message and an exit code (main.go): 2 where the command line or the configuration is wrong (usage.go), 1 otherwise.
package main

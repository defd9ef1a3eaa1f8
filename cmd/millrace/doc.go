// Command millrace is the sidecar and its tools, in one binary.
//
// This package has the settings of a sidecar, and the wiring of its parts: run.go is the only place
// where parts are connected, and the order of its defers is the order in which they end. All other
// commands are in packages below internal: cli talks to a running sidecar, doctor examines a
// broker, and devup is `millrace up`.
//
// # When things fail
//
// A sidecar that cannot reach its broker stays up, says so in its log and in /readyz, and connects
// when the broker answers. Where waiting does not help, the process ends with a message and an exit
// code: 2 if the command line or the configuration is wrong, 1 otherwise. Examples are an address
// that is in use, a state directory that another sidecar uses, and a broker that refuses the first
// login.
//
// A view that cannot be trusted any more is rebuilt by the same process (serve.go).
package main

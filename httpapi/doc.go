// Package httpapi is the sidecar's HTTP API: pending entries, jobs, queues and workers, commands on
// them, health and metrics. With the packages below it, it alone knows echo.
//
// It answers from the view. A change becomes a command to the leader, and the view shows the result
// once it has read the record. No request scans a stream; a record that is too large for the view
// (over 64 KiB) is read by its offset.
//
// Handlers are grouped by noun: each group is a small type with the few things that it needs. New
// makes them in server.go, and routes.go lists them, one line a route.
//
//	answer   the types of answers, which the commands decode too
//	problem  errors as answers, strict reading of requests; the floor
//	auth     users, roles, sessions, allowed hosts and origins
//	live     what changes, pushed to viewers
//	prom     /metrics
//
// # Promises
//
// An item is the stored record byte for byte, with one member more. Unknown parameters are refused:
// a filter that is ignored shows, and one day deletes, entries that the user did not mean. Every
// route names the access that it needs. Without sign-in only this machine's users can connect.
//
// # Failures
//
// Without a leader commands answer 503 no_leader, and nothing was done. 504 outcome_unknown says
// that it may have been done, and that it is safe to repeat. Lists still answer from what was read;
// /readyz says that it may be old. A large record that cannot be read is left out, with the reason.
package httpapi

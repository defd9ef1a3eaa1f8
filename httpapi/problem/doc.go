// Package problem is the floor of httpapi: it reads requests strictly and turns errors into
// answers. The packages above use it; it knows none of them.
//
// # Promises
//
// Every error that a client sees is {"error","reason","request_id"} with one status. Programs
// branch on the code in "error"; "reason" is for people. The log has the same request id.
//
// Input is strict. An unknown parameter or member is an error, and so is one that is empty: a
// filter that is ignored shows, and one day deletes, entries that the user did not mean.
//
// # Failures
//
// An error that no handler foresaw is answered as 500 without its text, which only the log gets.
// An answer that has begun is cut off, so that no client takes it for complete.
package problem

// Package garbagetest writes invalid data to every place of a real broker that clients may write
// to, and checks that nothing stops:
//
//   - Each good job between the garbage is fired once.
//   - Each bad record is listed or counted, with its reason.
//   - No epoch ends.
//   - A sidecar that starts later has the same state.
//
// It has only tests.
package garbagetest

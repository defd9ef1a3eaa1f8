// Package garbagetest writes to a real broker what nobody should write, wherever a client may write, and checks that nothing stops: every
// good job between is fired once, each bad record is listed or counted with its reason, no epoch ends, and a sidecar that comes later makes
// the same of it. It holds tests only.
package garbagetest

//go:build !semaphore

package main

import "context"

// acquirer is for jobs without limits.
func (p *peer) acquirer() func(context.Context, int) (release func() error, err error) {
	return func(context.Context, int) (func() error, error) { return func() error { return nil }, nil }
}

//go:build !race

package scheduler

const slow = false

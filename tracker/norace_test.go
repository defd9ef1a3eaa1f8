//go:build !race

package tracker

const slow = false

package view

import (
	"errors"
	"strings"
	"syscall"
)

// isLocked reports whether another process has the store open. Pebble has no error of its own for
// that.
func isLocked(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK) || strings.Contains(err.Error(), "lock held")
}

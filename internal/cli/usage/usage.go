// Package usage marks errors that the command line or the configuration is to blame for. A command
// that returns such an error has changed nothing, and its exit code is 2 instead of 1.
package usage

import (
	"errors"
	"fmt"
)

type fault struct{ error }

func (f fault) Unwrap() error { return f.error }

// Fault marks an error as a fault of the command line. It returns nil if the error is nil.
func Fault(err error) error {
	if err == nil {
		return nil
	}
	return fault{err}
}

// Errorf returns a formatted error that is marked as a fault of the command line.
func Errorf(format string, args ...any) error { return Fault(fmt.Errorf(format, args...)) }

// Is reports whether an error, or one that it wraps, is marked.
func Is(err error) bool { return errors.As(err, &fault{}) }

package main

import "fmt"

// usageError is a fault of the command line or the configuration, for which the exit code is 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usage marks an error as a fault of the command line; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

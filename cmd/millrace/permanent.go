package main

import "strings"

// permanentError ends the sidecar at its first connection: trying again does not help.
type permanentError struct {
	err    error
	remedy string // lines; empty if err says it
}

func (e *permanentError) Error() string {
	text := e.err.Error()
	for line := range strings.Lines(e.remedy) {
		text += "\n  → " + strings.TrimSuffix(line, "\n")
	}
	return text
}

func (e *permanentError) Unwrap() error { return e.err }

package brokertest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is long enough for a slow machine. A test that passes does not use it up.
const patience = time.Minute

// Eventually waits until the condition holds, for a minute at most. The message says what was
// expected.
func Eventually(t T, holds func() bool, message string, args ...any) {
	t.Helper()
	EventuallyWithin(t, patience, holds, message, args...)
}

// EventuallyWithin is Eventually with a deadline that is part of the test. It checks the condition
// in the test's own goroutine, so the condition may use require.
func EventuallyWithin(t T, limit time.Duration, holds func() bool, message string, args ...any) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			require.FailNow(t, fmt.Sprintf("not within %v: %s", limit, fmt.Sprintf(message, args...)))
		}
		select {
		case <-t.Context().Done():
			require.FailNow(t, "the test ended while waiting: "+fmt.Sprintf(message, args...))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

package millrace

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// A timeout reads as it was given, in whatever language the worker is written.
func TestTimeoutsReadAsTheyWereGiven(t *testing.T) {
	for _, text := range []string{"3600", "86400", "1234.5", "2", "0.3", "0.29", "1.001", "0.00001"} {
		require.Equal(t, "ran longer than "+text+" s", timeoutError{seconds(gjson.Parse(text))}.Error())
	}
}

// What an error is called in the web UI: what it says of itself, else its type, else just an error.
func TestErrorClasses(t *testing.T) {
	for class, err := range map[string]error{
		"error":             errors.New("x"),
		"*millrace.tooBusy": RetryIn(time.Second, fmt.Errorf("while saving: %w", &tooBusy{})),
		"Timeout":           fmt.Errorf("slow: %w", timeoutError{time.Second}),
		"Killed":            Kill("broken"),
		"HandBack":          fmt.Errorf("giving up: %w", ErrHandBack),
	} {
		require.Equal(t, class, errorClass(err), "%v", err)
	}
	cause := errors.New("the disk is full")
	require.ErrorIs(t, &panicError{value: cause}, cause, "an error that was thrown can be looked for")
	require.NotErrorIs(t, &panicError{value: "the disk is full"}, cause)
}

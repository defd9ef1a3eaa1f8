package millrace

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// The error of a timeout has the number as it was given, as in every other language.
func TestTimeoutErrorKeepsNumber(t *testing.T) {
	for _, text := range []string{"3600", "86400", "1234.5", "2", "0.3", "0.29", "1.001", "0.00001"} {
		require.Equal(t, "ran longer than "+text+" s", timeoutError{seconds(gjson.Parse(text))}.Error())
	}
}

type tooBusy struct{}

func (*tooBusy) Error() string { return "too busy" }

// The web UI shows an error under the class that it names, or its type, or else just "error".
func TestErrorClasses(t *testing.T) {
	for class, err := range map[string]error{
		"error":             errors.New("x"),
		"*millrace.tooBusy": RetryIn(time.Second, fmt.Errorf("while saving: %w", &tooBusy{})),
		"Timeout":           fmt.Errorf("slow: %w", timeoutError{time.Second}),
		"Killed":            Kill("broken"),
		"HandBack":          fmt.Errorf("giving up: %w", ErrHandBack),
	} {
		require.Equal(t, class, ErrorClass(err), "%v", err)
	}
	cause := errors.New("the disk is full")
	require.ErrorIs(t, &panicError{value: cause}, cause, "an error that was thrown can be looked for")
	require.NotErrorIs(t, &panicError{value: "the disk is full"}, cause)
}

type frames []string

func (f frames) Format(s fmt.State, _ rune) {
	if s.Flag('+') {
		for _, frame := range f {
			_, _ = fmt.Fprintf(s, "\n%s", frame)
		}
	}
}

type stackError struct {
	error
	frames frames
}

func (e stackError) StackTrace() frames { return e.frames }
func (e stackError) Unwrap() error      { return e.error }

// A stack is found where the usual packages for errors have it. The innermost one is the nearest to
// the failure.
func TestStackOfInnermostError(t *testing.T) {
	inner := stackError{errors.New("x"), frames{"main.work", "\tmain.go:12", "main.main", "\tmain.go:7"}}
	outer := fmt.Errorf("failed: %w", stackError{inner, frames{"elsewhere"}})
	require.Equal(t, []string{"main.work", "\tmain.go:12", "main.main", "\tmain.go:7"}, backtrace(outer))
	require.Empty(t, backtrace(errors.New("x")))
	require.Equal(t, []string{"a"}, backtrace(fmt.Errorf("failed: %w", &panicError{stack: []string{"a"}})))
}

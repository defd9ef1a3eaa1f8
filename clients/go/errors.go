package millrace

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// What can go wrong with a publish. Each error of a Client is one of these, by errors.Is.
var (
	// ErrInvalid: the job breaks a rule. Nothing was sent.
	ErrInvalid = errors.New("invalid job")
	// ErrRefused: the broker said no: the queue is full or down, or there is none and no sidecar to make it.
	ErrRefused = errors.New("refused by the broker")
	// ErrUnreachable: there was no connection until the deadline. The broker does not have the job.
	ErrUnreachable = errors.New("broker not reached")
	// ErrUnconfirmed: it was sent, and the deadline passed, or the client was closed, without an answer. It may have arrived. The
	// error is an *UnconfirmedError, which has the jid.
	ErrUnconfirmed = errors.New("not confirmed")
	// ErrClosed: the client was closed. The broker does not have the job.
	ErrClosed = errors.New("client is closed")
)

// UnconfirmedError is the error of a job that may have been enqueued, or not. Enqueue returns the jid beside it.
//
// To enqueue the job again, set EnqueueOptions.JID to the jid: a handler that is called twice can find out that it is the same job.
type UnconfirmedError struct {
	JID   string
	cause error
}

func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("%v, job %s may have arrived: %v", ErrUnconfirmed, e.JID, e.cause)
}

// Unwrap returns ErrUnconfirmed, and why there was no answer, unless that is another error of a Client: for this job it is not true.
func (e *UnconfirmedError) Unwrap() []error {
	if errors.Is(e.cause, ErrUnreachable) || errors.Is(e.cause, ErrClosed) || errors.Is(e.cause, ErrRefused) {
		return []error{ErrUnconfirmed}
	}
	return []error{ErrUnconfirmed, e.cause}
}

// jidOf returns the jid of a job that may have been enqueued, or "".
func jidOf(err error) string {
	if unconfirmed := (*UnconfirmedError)(nil); errors.As(err, &unconfirmed) {
		return unconfirmed.JID
	}
	return ""
}

// ErrHandBack is what a handler returns when it gives up because the worker is stopping: the job goes back to its queue as it came.
// From a worker that is not stopping it is a failure.
var ErrHandBack = errors.New("handed back by a worker that is not stopping")

// Why a handler's context has ended, by context.Cause.
var (
	// ErrStopping: the worker's stop timeout is over.
	ErrStopping = errors.New("the worker is stopping")
	// ErrCancelled: the job was cancelled, in the web UI for example.
	ErrCancelled = errors.New("the job was cancelled")
)

// timeoutError is the cause of a context whose job ran longer than it may, and the job's failure.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string {
	return "ran longer than " + strconv.FormatFloat(e.after.Seconds(), 'f', -1, 64) + " s"
}
func (timeoutError) ErrorClass() string { return "Timeout" }

type unknownClassError struct{ class string }

func (e unknownClassError) Error() string    { return "no handler for class " + e.class }
func (unknownClassError) ErrorClass() string { return "UnknownClass" }

// panicError is what is left of a panic.
type panicError struct {
	value any
	stack []string
}

func (e *panicError) Error() string       { return fmt.Sprintf("panic: %v", e.value) }
func (*panicError) ErrorClass() string    { return "panic" }
func (e *panicError) Backtrace() []string { return e.stack }
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

type discardError struct{ reason string }

func (e discardError) Error() string { return "discarded: " + e.reason }

// Discard is an error by which a handler drops its job: no retry, no dead job.
func Discard(reason string) error { return discardError{reason} }

type killError struct{ cause error }

func (e killError) Error() string { return e.cause.Error() }
func (e killError) Unwrap() error { return e.cause }
func (killError) verdict()        {}

type killed string

func (k killed) Error() string    { return string(k) }
func (killed) ErrorClass() string { return "Killed" }

// Kill is an error by which a handler gives its job up at once: it becomes a dead job.
func Kill(reason string) error { return killError{killed(reason)} }

// KillWith is Kill with an error that the dead job shows.
func KillWith(cause error) error { return killError{cause} }

type retryInError struct {
	after time.Duration
	cause error
}

func (e retryInError) Error() string { return e.cause.Error() }
func (e retryInError) Unwrap() error { return e.cause }
func (retryInError) verdict()        {}

// RetryIn is an error by which a handler fails and says when it is to be tried again.
func RetryIn(after time.Duration, cause error) error { return retryInError{after, cause} }

// errorClass names an error for people: what it says of itself by a method ErrorClass() string, else the type of the first error in
// its chain that is more than a text.
func errorClass(err error) string {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if named, ok := e.(interface{ ErrorClass() string }); ok {
			return named.ErrorClass()
		}
		if name := fmt.Sprintf("%T", e); !strings.HasPrefix(name, "*fmt.") && !strings.HasPrefix(name, "*errors.") && !isOurs(e) {
			return name
		}
	}
	if errors.Is(err, ErrHandBack) {
		return "HandBack"
	}
	return "error"
}

// isOurs tells whether an error only says what is to become of a job.
func isOurs(err error) bool {
	_, ours := err.(interface{ verdict() })
	return ours
}

// bare returns an error without what only says what becomes of the job.
func bare(err error) error {
	for isOurs(err) {
		err = errors.Unwrap(err)
	}
	return err
}

// backtrace returns where an error came from, if the error knows: by a method Backtrace() []string, or a method StackTrace whose result
// %+v shows, as errors of github.com/pkg/errors have it.
func backtrace(err error) []string {
	var traced interface{ Backtrace() []string }
	if errors.As(err, &traced) {
		return traced.Backtrace()
	}
	var lines []string
	for e := err; e != nil; e = errors.Unwrap(e) { // the innermost is the nearest
		m := reflect.ValueOf(e).MethodByName("StackTrace")
		if m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
			lines = strings.Split(strings.TrimSpace(fmt.Sprintf("%+v", m.Call(nil)[0])), "\n")
		}
	}
	return lines
}

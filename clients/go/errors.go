package millrace

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Errors of a publish. Every error of a Client is one of these, by errors.Is.
var (
	// ErrInvalid is returned when the job breaks a rule. Nothing was sent.
	ErrInvalid = errors.New("invalid job")
	// ErrRefused is returned when the broker refused the job: its queue is full or down, or it does
	// not exist and no sidecar creates it.
	ErrRefused = errors.New("refused by the broker")
	// ErrUnreachable is returned when there was no connection until the deadline. The broker does
	// not have the job.
	ErrUnreachable = errors.New("broker not reached")
	// ErrUnconfirmed is returned when the job was sent, and there was no answer until the deadline
	// passed or the client was closed. The job may have arrived. The error is an *UnconfirmedError,
	// which has the jid.
	ErrUnconfirmed = errors.New("not confirmed")
	// ErrClosed is returned when the client was closed. The broker does not have the job.
	ErrClosed = errors.New("client is closed")
)

// UnconfirmedError is the error of a job that may have been enqueued. Enqueue returns the jid with
// it.
//
// To enqueue the job again, set EnqueueOptions.JID to the jid. A handler that is called twice can
// then recognise the job.
type UnconfirmedError struct {
	JID   string
	cause error
}

func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("%v, job %s may have arrived: %v", ErrUnconfirmed, e.JID, e.cause)
}

// Unwrap returns ErrUnconfirmed and the reason why there was no answer. It leaves out a reason that
// is another error of a Client, because that error does not apply to this job.
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

// ErrHandBack is returned by a handler that gives up because the worker is stopping. The job goes
// back to its queue unchanged. If the worker is not stopping, the error is a failure.
var ErrHandBack = errors.New("handed back by a worker that is not stopping")

// Causes for which a handler's context has ended, as context.Cause returns them.
var (
	// ErrStopping is the cause when the worker's stop timeout is over.
	ErrStopping = errors.New("the worker is stopping")
	// ErrCancelled is the cause when the job was cancelled, for example in the web UI.
	ErrCancelled = errors.New("the job was cancelled")
)

// timeoutError is the cause of a context whose job exceeded its timeout, and the failure of that
// job.
type timeoutError struct{ after time.Duration }

func (e timeoutError) Error() string {
	return "ran longer than " + strconv.FormatFloat(e.after.Seconds(), 'f', -1, 64) + " s"
}
func (timeoutError) ErrorClass() string { return "Timeout" }

type unknownClassError struct{ class string }

func (e unknownClassError) Error() string    { return "no handler for class " + e.class }
func (unknownClassError) ErrorClass() string { return "UnknownClass" }

// panicError describes a panic.
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

func (e discardError) Error() string      { return "discarded: " + e.reason }
func (discardError) Is(target error) bool { return target == ErrDiscarded }

// ErrDiscarded is what errors.Is finds in an error of Discard.
var ErrDiscarded = errors.New("discarded")

// Discard returns an error with which a handler drops its job: it is not retried, and does not
// become a dead job.
func Discard(reason string) error { return discardError{reason} }

type killError struct{ cause error }

func (e killError) Error() string { return e.cause.Error() }
func (e killError) Unwrap() error { return e.cause }
func (killError) verdict()        {}

type killed string

func (k killed) Error() string    { return string(k) }
func (killed) ErrorClass() string { return "Killed" }

// Kill returns an error with which a handler gives up its job immediately: it becomes a dead job.
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

// RetryIn returns an error with which a handler fails, and says when the job is retried.
func RetryIn(after time.Duration, cause error) error { return retryInError{after, cause} }

// ErrorClass returns the class of an error, as retries and dead jobs show it. It is the result of a
// method ErrorClass() string, or else the type of the first error in the chain that is more than a
// text.
func ErrorClass(err error) string {
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

// isOurs reports whether an error only says what becomes of a job.
func isOurs(err error) bool {
	_, ours := err.(interface{ verdict() })
	return ours
}

// bare returns an error without the errors around it that only say what becomes of the job.
func bare(err error) error {
	for isOurs(err) {
		err = errors.Unwrap(err)
	}
	return err
}

// backtrace returns the stack of an error that has one: from a method Backtrace() []string, or from
// a method StackTrace whose result %+v formats, as in errors of github.com/pkg/errors.
func backtrace(err error) []string {
	var traced interface{ Backtrace() []string }
	if errors.As(err, &traced) {
		return traced.Backtrace()
	}
	var lines []string
	for e := err; e != nil; e = errors.Unwrap(e) { // the innermost one is nearest to the failure
		m := reflect.ValueOf(e).MethodByName("StackTrace")
		if m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
			lines = strings.Split(strings.TrimSpace(fmt.Sprintf("%+v", m.Call(nil)[0])), "\n")
		}
	}
	return lines
}

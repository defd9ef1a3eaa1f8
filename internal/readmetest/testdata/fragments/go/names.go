// Package fragments has the names that the fragments in the Go client's README use.
package fragments

import (
	"context"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

var (
	ctx      context.Context
	client   *millrace.Client
	worker   *millrace.Worker
	url, jid string
	tomorrow time.Time
	vault    interface {
		Token(ctx context.Context) (string, error)
	}
	sentry interface{ CaptureException(err error) }
)

// page wakes a person up.
func page(class, jid string, err error) {}

// ResizeArgs are args of a job.
type ResizeArgs struct{ Image int }

// Kind returns the job's class.
func (ResizeArgs) Kind() string { return "Resize" }

// RemindArgs are args of a job.
type RemindArgs struct{ User int }

// Kind returns the job's class.
func (RemindArgs) Kind() string { return "Remind" }

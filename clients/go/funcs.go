package millrace

import "context"

// Handler runs one job. Its context ends when the job is cancelled, when its timeout is over, or
// when the stop timeout of the worker is over. context.Cause returns which.
type Handler func(ctx context.Context, job *RawJob) error

// Middleware wraps handlers. The error that it returns decides what becomes of the job.
type Middleware func(next Handler) Handler

// Func0 returns a handler that calls a function without args.
func Func0(work func(context.Context) error) Handler {
	return func(ctx context.Context, job *RawJob) error {
		if err := job.Bind(); err != nil {
			return err
		}
		return work(ctx)
	}
}

// Func1 returns a handler that calls a function with one arg.
func Func1[A any](work func(context.Context, A) error) Handler {
	return func(ctx context.Context, job *RawJob) error {
		var a A
		if err := job.Bind(&a); err != nil {
			return err
		}
		return work(ctx, a)
	}
}

// Func2 returns a handler that calls a function with two args. A job that was enqueued with another
// number of args fails. For args that may grow, use one struct and [Handle].
func Func2[A, B any](work func(context.Context, A, B) error) Handler {
	return func(ctx context.Context, job *RawJob) error {
		var a A
		var b B
		if err := job.Bind(&a, &b); err != nil {
			return err
		}
		return work(ctx, a, b)
	}
}

// Func3 returns a handler that calls a function with three args, as [Func2] does with two.
func Func3[A, B, C any](work func(context.Context, A, B, C) error) Handler {
	return func(ctx context.Context, job *RawJob) error {
		var a A
		var b B
		var c C
		if err := job.Bind(&a, &b, &c); err != nil {
			return err
		}
		return work(ctx, a, b, c)
	}
}

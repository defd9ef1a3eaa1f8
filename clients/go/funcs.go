package millrace

import "context"

// Handler works on one job. Its context ends when the job was cancelled, ran into its timeout, or has to end because the worker does;
// context.Cause says which.
type Handler func(ctx context.Context, job *RawJob) error

// Middleware wraps handlers. What it returns is the job's outcome.
type Middleware func(next Handler) Handler

// Func0 makes a handler of a function without args.
func Func0(work func(context.Context) error) Handler {
	return func(ctx context.Context, job *RawJob) error {
		if err := job.Bind(); err != nil {
			return err
		}
		return work(ctx)
	}
}

// Func1 makes a handler of a function with one arg.
func Func1[A any](work func(context.Context, A) error) Handler {
	return func(ctx context.Context, job *RawJob) error {
		var a A
		if err := job.Bind(&a); err != nil {
			return err
		}
		return work(ctx, a)
	}
}

// Func2 makes a handler of a function with two args.
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

// Func3 makes a handler of a function with three args.
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

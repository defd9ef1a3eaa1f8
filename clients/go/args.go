package millrace

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// JobArgs is the args of a job: one struct, which is encoded as JSON. Kind returns the name of the
// job's class, with which a worker finds the handler.
//
//	type SendEmailArgs struct {
//		To   string `json:"to"`
//		Text string `json:"text"`
//	}
//
//	func (SendEmailArgs) Kind() string { return "SendEmail" }
//
// You can add fields to the struct while jobs wait. A field that a job does not have keeps its zero
// value. A field that a worker does not know is ignored.
type JobArgs interface {
	Kind() string
}

// JobArgsWithOptions is JobArgs with options for every job of its kind. Options in the call of
// Enqueue take precedence.
type JobArgsWithOptions interface {
	JobArgs
	EnqueueOptions() EnqueueOptions
}

// ArgList is JobArgs without a type of its own: a class and a list of args, as handlers in other
// languages often take them. The function Args returns one.
type ArgList struct {
	Class string
	List  []any
}

// Kind returns the class.
func (a ArgList) Kind() string { return a.Class }

// Args returns the args of a job as a list.
//
//	client.Enqueue(ctx, millrace.Args("Resize", "cat.png", 640, 480), nil)
func Args(class string, list ...any) ArgList { return ArgList{class, list} }

// listOf returns args as the list that is in the job.
func listOf(args JobArgs) []any {
	list, ok := args.(ArgList)
	switch {
	case !ok:
		return []any{args}
	case list.List == nil:
		return []any{}
	}
	return list.List
}

// Job is a job whose args have been decoded into a struct.
type Job[T JobArgs] struct {
	*RawJob
	Args T
}

// Handle registers the function that runs the jobs of a kind. The type of its job determines the
// kind. options may be nil. Handle panics in the same cases as [Worker.Handle].
//
//	millrace.Handle(worker, func(ctx context.Context, job *millrace.Job[SendEmailArgs]) error {
//		return mailer.Send(ctx, job.Args.To, job.Args.Text)
//	}, nil)
func Handle[T JobArgs](w *Worker, work func(context.Context, *Job[T]) error, options *HandlerOptions) {
	kind, err := KindOf[T]()
	if err != nil {
		panic(fmt.Sprintf("millrace: Handle: %v", err))
	}
	if work == nil {
		panic("millrace: Handle: the handler of " + kind + " is nil")
	}
	w.Handle(kind, func(ctx context.Context, raw *RawJob) error {
		job := &Job[T]{RawJob: raw}
		if err := raw.Bind(&job.Args); err != nil {
			return err
		}
		return work(ctx, job)
	}, options)
}

// KindOf returns the kind of a type of args. It is for test helpers.
func KindOf[T JobArgs]() (string, error) {
	args, err := zeroArgs[T]()
	if err != nil {
		return "", err
	}
	if _, list := any(args).(ArgList); list {
		return "", errors.New("an ArgList names no class: use the method Worker.Handle")
	}
	kind := args.Kind()
	if kind == "" {
		return "", fmt.Errorf("%T has an empty Kind", args)
	}
	return kind, nil
}

// zeroArgs returns a value of a type of args. It is never nil.
func zeroArgs[T JobArgs]() (args T, err error) {
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Interface:
		return args, fmt.Errorf("the args of a job need a type of their own, and %v is an interface", t)
	case reflect.Pointer:
		args, _ = reflect.New(t.Elem()).Interface().(T)
	}
	return args, nil
}

// Package millrace enqueues background jobs and works them off, through RabbitMQ or LavinMQ with a Millrace sidecar beside it.
//
// A producer is a [Client]:
//
//	client, err := millrace.NewClient(millrace.ClientConfig{URL: "amqp://localhost"})
//	jid, err := client.Enqueue(ctx, "SendEmail", []any{"ann@example.com", "Hello!"})
//
// A [Worker] runs functions by the class of a job:
//
//	worker := millrace.NewWorker(millrace.WorkerConfig{URL: "amqp://localhost", Queues: []string{"critical", "default"}})
//	worker.Handle("SendEmail", millrace.Func2(func(ctx context.Context, to, text string) error { … }))
//	err := worker.Run(ctx)
//
// # Promises
//
//   - Enqueue returns nil only when the broker has confirmed the job. A lost connection is made again, and what was not confirmed is
//     published again with the same jid, until the context's deadline.
//   - A job is acknowledged only after it has ended and after what became of it (a retry, a dead job) was confirmed. A worker that dies
//     in between repeats a job and never loses one. Jobs should be idempotent.
//   - A job's bytes are its owner's: what comes back after a failure is byte for byte what was enqueued.
//   - A handler that panics fails; it does not end the process. A handler that blocks for an hour holds nothing up but its own slot.
//   - Run returns after every job has ended or was handed back, and leaves no goroutine behind but those of handlers that do not end.
//
// docs/clients.md has the rules that this package and the libraries of other languages follow.
package millrace

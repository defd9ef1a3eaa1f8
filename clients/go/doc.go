// Package millrace enqueues background jobs and runs them, through RabbitMQ or LavinMQ with a Millrace sidecar beside it.
//
// The args of a job are a struct ([JobArgs]), and Kind names the job's class:
//
//	type SendEmailArgs struct {
//		To   string `json:"to"`
//		Text string `json:"text"`
//	}
//
//	func (SendEmailArgs) Kind() string { return "SendEmail" }
//
// A [Client] enqueues jobs:
//
//	client, err := millrace.NewClient(millrace.ClientConfig{URL: "amqp://localhost"})
//	jid, err := client.Enqueue(ctx, SendEmailArgs{To: "ann@example.com", Text: "Hello!"}, nil)
//
// A [Worker] runs the handler of each job's class:
//
//	worker := millrace.NewWorker(millrace.WorkerConfig{URL: "amqp://localhost", Queues: []string{"critical", "default"}})
//	millrace.Handle(worker, func(ctx context.Context, job *millrace.Job[SendEmailArgs]) error {
//		return mailer.Send(ctx, job.Args.To, job.Args.Text)
//	}, nil)
//	err := worker.Run(ctx)
//
// Jobs whose args are a list, as other languages write them, are enqueued with [Args], and handled with [Worker.Handle] and [Func2].
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

// Package millrace enqueues background jobs and runs them, through RabbitMQ or LavinMQ with a
// Millrace sidecar beside it.
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
//	worker := millrace.NewWorker(millrace.WorkerConfig{
//		URL: "amqp://localhost", Queues: []string{"critical", "default"},
//	})
//	millrace.Handle(worker, func(ctx context.Context, job *millrace.Job[SendEmailArgs]) error {
//		return mailer.Send(ctx, job.Args.To, job.Args.Text)
//	}, nil)
//	err := worker.Run(ctx)
//
// Jobs whose args are a list, as in other languages, are enqueued with [Args], and handled with
// [Worker.Handle] and [Func2].
//
// # Promises
//
//   - Enqueue returns nil only when the broker has confirmed the job.
//   - A job is acknowledged only when it has ended, and the broker has confirmed its retry or dead
//     job. So a worker that dies repeats a job and never loses one. Jobs should be idempotent.
//   - The bytes of a job belong to its owner. After a failure, the job comes back byte for byte as
//     it was enqueued.
//   - Run returns when every job has ended or was handed back. It leaves no goroutine behind,
//     except handlers that do not return.
//
// # Failures
//
//   - The connection is lost: the client and the worker connect again. Until the deadline of its
//     context, the client publishes unconfirmed jobs again, with the same jid.
//   - A handler returns an error or panics: the job is retried. The process continues.
//   - A handler blocks: it keeps its slot. All other slots continue.
//   - A worker dies: the broker delivers its jobs again.
//
// docs/clients.md has the rules that the libraries of all languages follow.
package millrace

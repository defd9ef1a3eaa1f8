// Package millracetest helps to test code that enqueues jobs, and the handlers of jobs, without a
// broker.
//
//	fake := millracetest.NewFake(worker)
//	signUp(ctx, fake, "ann@example.com")       // code that takes a millrace.Enqueuer
//	enqueued := millracetest.Enqueued[WelcomeArgs](t, fake)
//	require.Equal(t, []WelcomeArgs{{To: "ann@example.com"}}, enqueued)
//	require.NoError(t, fake.Drain(ctx))        // runs the handlers of worker
//
// A [Fake] keeps jobs until they are drained. A job that fails waits for [Fake.Retry], which runs
// its next attempt. A job that is given up is in [Fake.Dead]. An [Inline] runs each job when it is
// enqueued.
//
// Both keep unique jobs apart: a duplicate is not enqueued, and EnqueueUnique says so.
//
// Both keep the periodic jobs, limits and governed queues that code defines: see Define and
// Periodic, DefineLimits and Limits, DefineQueues and Queues.
//
// Both check jobs as a Client does, and handlers get args that went through JSON. Middleware,
// timeouts, and the hooks Failure and Death work as in production.
package millracetest

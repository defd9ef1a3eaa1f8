// Package millracetest helps to test code that enqueues jobs, and the handlers of jobs, without a broker.
//
//	fake := millracetest.NewFake(worker)
//	signUp(ctx, fake, "ann@example.com")       // code that takes a millrace.Enqueuer
//	require.Equal(t, []WelcomeArgs{{To: "ann@example.com"}}, millracetest.Enqueued[WelcomeArgs](t, fake))
//	require.NoError(t, fake.Drain(ctx))        // runs the handlers of worker
//
// A [Fake] keeps jobs until they are drained. Those that fail wait for [Fake.Retry], which runs them as their next attempt; those that
// are given up are [Fake.Dead]. An [Inline] runs each job when it is enqueued.
//
// Both check jobs as a Client does, and handlers get args that went through JSON. Middleware, timeouts, and the hooks Failure and Death
// are as they are in production.
package millracetest

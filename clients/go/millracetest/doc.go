// Package millracetest helps to test code that enqueues jobs, without a broker.
//
//	fake := millracetest.NewFake(worker)
//	signUp(ctx, fake, "ann@example.com")       // code that takes a millrace.Enqueuer
//	require.Len(t, fake.Jobs("Welcome"), 1)
//	require.NoError(t, fake.Drain(ctx))        // runs the handlers of worker
//
// An Inline runs each job at once. Both check jobs as a Client does, and handlers get args that went through JSON.
package millracetest

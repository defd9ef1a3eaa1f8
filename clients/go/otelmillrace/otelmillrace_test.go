package otelmillrace_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/clients/go/otelmillrace"
)

type mail struct{}

func (mail) Kind() string { return "Mail" }

// spans collects what a provider makes.
func spans(t *testing.T) (*trace.TracerProvider, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return provider, recorder
}

// enqueued returns the traceparent of a job after it has passed the middleware of a client.
func enqueued(ctx context.Context, t *testing.T, provider *trace.TracerProvider, options millrace.EnqueueOptions) string {
	t.Helper()
	publish := otelmillrace.Publish(&otelmillrace.Config{TracerProvider: provider})
	job := &millrace.EnqueueParams{Args: mail{}, Options: options}
	jid, err := publish(func(context.Context, *millrace.EnqueueParams) (string, error) { return "17", nil })(ctx, job)
	require.NoError(t, err)
	require.Equal(t, "17", jid)
	return job.Options.Traceparent
}

func delivered(traceparent string, attempt int, raw string) *millrace.RawJob {
	return &millrace.RawJob{
		JID: "17", Class: "Mail", Queue: "mail", Attempt: attempt, RetryCount: attempt - 1, Raw: []byte(raw),
		Headers: map[string]any{"traceparent": traceparent},
	}
}

func attributesOf(span trace.ReadOnlySpan) map[string]any {
	found := map[string]any{}
	for _, a := range span.Attributes() {
		found[string(a.Key)] = a.Value.AsInterface()
	}
	return found
}

func TestSpansOfJob(t *testing.T) {
	provider, recorder := spans(t)
	ctx, request := provider.Tracer("test").Start(context.Background(), "POST /orders")
	traceparent := enqueued(ctx, t, provider, millrace.EnqueueOptions{Queue: "mail"})
	request.End()

	var inside api.SpanContext
	process := otelmillrace.Process(&otelmillrace.Config{TracerProvider: provider})
	err := process(func(ctx context.Context, _ *millrace.RawJob) error {
		inside = api.SpanContextFromContext(ctx)
		return nil
	})(context.Background(), delivered(traceparent, 1, `{"enqueued_at":1}`))
	require.NoError(t, err)

	publish, attempt := recorder.Ended()[0], recorder.Ended()[2]
	require.Equal(t, "publish mail", publish.Name())
	require.Equal(t, api.SpanKindProducer, publish.SpanKind())
	require.Equal(t, request.SpanContext().SpanID(), publish.Parent().SpanID())
	require.Equal(t, fmt.Sprintf("00-%s-%s-01", publish.SpanContext().TraceID(), publish.SpanContext().SpanID()), traceparent)
	require.Equal(t, map[string]any{
		"messaging.system": "rabbitmq", "messaging.operation.name": "publish", "messaging.operation.type": "send",
		"messaging.destination.name": "mail", "messaging.message.id": "17", "millrace.class": "Mail",
	}, attributesOf(publish))

	require.Equal(t, "process mail", attempt.Name())
	require.Equal(t, api.SpanKindConsumer, attempt.SpanKind())
	require.Equal(t, publish.SpanContext().SpanID(), attempt.Parent().SpanID())
	require.Equal(t, inside, attempt.SpanContext(), "the handler's own spans are below the attempt's")
	require.Equal(t, codes.Unset, attempt.Status().Code)
	require.Equal(t, map[string]any{
		"messaging.system": "rabbitmq", "messaging.operation.name": "process", "messaging.operation.type": "process",
		"messaging.destination.name": "mail", "messaging.message.id": "17", "millrace.class": "Mail", "millrace.attempt": int64(1),
	}, attributesOf(attempt))
}

// A job that comes days later belongs to no trace that is long over, unless the program wants that.
func TestParentOfAttempt(t *testing.T) {
	const first, scheduled = `{"enqueued_at":1}`, `{"created_at":1}`
	for name, c := range map[string]struct {
		parent  otelmillrace.Parent
		attempt int
		raw     string
		child   bool
	}{
		"first attempt":       {otelmillrace.Auto, 1, first, true},
		"retry":               {otelmillrace.Auto, 2, first, false},
		"scheduled":           {otelmillrace.Auto, 1, scheduled, false},
		"child at each retry": {otelmillrace.Child, 2, scheduled, true},
		"link at once":        {otelmillrace.Link, 1, first, false},
	} {
		t.Run(name, func(t *testing.T) {
			provider, recorder := spans(t)
			traceparent := enqueued(context.Background(), t, provider, millrace.EnqueueOptions{})
			process := otelmillrace.Process(&otelmillrace.Config{TracerProvider: provider, Parent: c.parent})
			// A worker whose context has a span does not become the parent of its jobs.
			ctx, worker := provider.Tracer("test").Start(context.Background(), "worker")
			defer worker.End()
			require.NoError(t, process(func(context.Context, *millrace.RawJob) error { return nil })(ctx, delivered(traceparent, c.attempt, c.raw)))
			publish, attempt := recorder.Ended()[0], recorder.Ended()[1]
			if c.child {
				require.Equal(t, publish.SpanContext().SpanID(), attempt.Parent().SpanID())
				require.Empty(t, attempt.Links())
				return
			}
			require.False(t, attempt.Parent().IsValid())
			require.Len(t, attempt.Links(), 1)
			require.Equal(t, publish.SpanContext().SpanID(), attempt.Links()[0].SpanContext.SpanID())
			require.NotEqual(t, publish.SpanContext().TraceID(), attempt.SpanContext().TraceID())
		})
	}
}

// What a client without tracing enqueued has a trace of its own.
func TestAttemptWithoutTraceparent(t *testing.T) {
	for _, traceparent := range []string{"", "garbage", "00-00000000000000000000000000000000-0000000000000000-01"} {
		provider, recorder := spans(t)
		process := otelmillrace.Process(&otelmillrace.Config{TracerProvider: provider})
		require.NoError(t, process(func(context.Context, *millrace.RawJob) error { return nil })(context.Background(), delivered(traceparent, 1, "{}")))
		require.False(t, recorder.Ended()[0].Parent().IsValid())
		require.Empty(t, recorder.Ended()[0].Links())
	}
}

// An outbox publishes later what a request has written.
func TestTraceparentOfProgramIsParent(t *testing.T) {
	provider, recorder := spans(t)
	const own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	traceparent := enqueued(context.Background(), t, provider, millrace.EnqueueOptions{Traceparent: own})
	publish := recorder.Ended()[0]
	require.Equal(t, "b7ad6b7169203331", publish.Parent().SpanID().String())
	require.Contains(t, traceparent, "0af7651916cd43dd8448eb211c80319c-"+publish.SpanContext().SpanID().String())
}

type tooBusy struct{}

func (*tooBusy) Error() string { return "too busy" }

func TestErrorOfAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		class string
	}{
		"an error":    {&tooBusy{}, "*otelmillrace_test.tooBusy"},
		"retry in":    {millrace.RetryIn(time.Second, &tooBusy{}), "*otelmillrace_test.tooBusy"},
		"killed":      {millrace.Kill("broken"), "Killed"},
		"discarded":   {fmt.Errorf("while mailing: %w", millrace.Discard("no address")), ""},
		"handed back": {fmt.Errorf("later: %w", millrace.ErrHandBack), "HandBack"}, // by a worker that is not stopping
	} {
		t.Run(name, func(t *testing.T) {
			provider, recorder := spans(t)
			process := otelmillrace.Process(&otelmillrace.Config{TracerProvider: provider})
			err := process(func(context.Context, *millrace.RawJob) error { return c.err })(context.Background(), delivered("", 1, "{}"))
			require.Equal(t, c.err, err)
			span := recorder.Ended()[0]
			if c.class == "" {
				require.Equal(t, codes.Unset, span.Status().Code)
				require.Empty(t, span.Events())
				return
			}
			require.Equal(t, trace.Status{Code: codes.Error, Description: c.err.Error()}, span.Status())
			require.Contains(t, span.Attributes(), attribute.String("error.type", c.class))
			require.Len(t, span.Events(), 1)
		})
	}
}

type timeout struct{}

func (timeout) Error() string      { return "ran longer than 1 s" }
func (timeout) ErrorClass() string { return "Timeout" }

// A handler that ends with its context has the error that the worker gives the job.
func TestContextOfAttemptEnds(t *testing.T) {
	for _, c := range []struct{ cause, want error }{{millrace.ErrStopping, nil}, {millrace.ErrCancelled, nil}, {timeout{}, timeout{}}} {
		provider, recorder := spans(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(c.cause)
		process := otelmillrace.Process(&otelmillrace.Config{TracerProvider: provider})
		err := process(func(ctx context.Context, _ *millrace.RawJob) error { return fmt.Errorf("while mailing: %w", ctx.Err()) })(ctx, delivered("", 1, "{}"))
		require.ErrorIs(t, err, context.Canceled)
		span := recorder.Ended()[0]
		if c.want == nil {
			require.Equal(t, codes.Unset, span.Status().Code)
			continue
		}
		require.Equal(t, trace.Status{Code: codes.Error, Description: c.want.Error()}, span.Status())
		require.Contains(t, span.Attributes(), attribute.String("error.type", "Timeout"))
	}
}

// A handler that panics has a span with an error, and the worker still gets the panic.
func TestPanicOfAttempt(t *testing.T) {
	provider, recorder := spans(t)
	process := otelmillrace.Process(&otelmillrace.Config{TracerProvider: provider})
	require.PanicsWithValue(t, "no address", func() {
		_ = process(func(context.Context, *millrace.RawJob) error { panic("no address") })(context.Background(), delivered("", 1, "{}"))
	})
	span := recorder.Ended()[0]
	require.Equal(t, codes.Error, span.Status().Code)
	require.Contains(t, span.Attributes(), attribute.String("error.type", "panic"))
}

// A job that cannot be enqueued has a span with the error.
func TestErrorOfPublish(t *testing.T) {
	provider, recorder := spans(t)
	publish := otelmillrace.Publish(&otelmillrace.Config{TracerProvider: provider})
	refused := errors.New("refused")
	_, err := publish(func(context.Context, *millrace.EnqueueParams) (string, error) { return "", refused })(context.Background(), &millrace.EnqueueParams{Args: mail{}})
	require.Equal(t, refused, err)
	require.Equal(t, trace.Status{Code: codes.Error, Description: "refused"}, recorder.Ended()[0].Status())
	require.Equal(t, "publish default", recorder.Ended()[0].Name())
}

// Without a provider of the program, everything works and nothing is recorded.
func TestWithoutConfiguration(t *testing.T) {
	job := &millrace.EnqueueParams{Args: mail{}}
	jid, err := otelmillrace.Publish(nil)(func(context.Context, *millrace.EnqueueParams) (string, error) { return "17", nil })(context.Background(), job)
	require.NoError(t, err)
	require.Equal(t, "17", jid)
	require.Empty(t, job.Options.Traceparent)
	require.NoError(t, otelmillrace.Process(nil)(func(context.Context, *millrace.RawJob) error { return nil })(context.Background(), delivered("", 1, "{}")))
}

package otelmillrace

import (
	"cmp"
	"context"
	"errors"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// Parent is how the span of an attempt refers to the span that enqueued the job.
type Parent int

const (
	// Auto makes a child of the first attempt of a job that was not scheduled, and links all
	// others: they may come days later.
	Auto Parent = iota
	// Child makes a child of each attempt, in the same trace.
	Child
	// Link begins a trace for each attempt, with a link.
	Link
)

// Config configures the spans. The zero value, and nil, are valid.
type Config struct {
	TracerProvider trace.TracerProvider // otel.GetTracerProvider() if nil
	Parent         Parent
}

const (
	scope       = "github.com/millrace-jobs/millrace/clients/go/otelmillrace"
	traceparent = "traceparent"
)

var format propagation.TraceContext

// Publish returns middleware of a client that begins a span "publish <queue>" for each job. If the
// job has a traceparent, for instance from an outbox, that is the parent of the span.
func Publish(config *Config) millrace.ClientMiddleware {
	tracer := config.tracer()
	return func(next millrace.EnqueueFunc) millrace.EnqueueFunc {
		return func(ctx context.Context, job *millrace.EnqueueParams) (string, error) {
			if own := job.Options.Traceparent; own != "" {
				ctx = format.Extract(ctx, propagation.MapCarrier{traceparent: own})
			}
			queue := cmp.Or(job.Options.Queue, "default")
			ctx, span := tracer.Start(ctx, "publish "+queue, trace.WithSpanKind(trace.SpanKindProducer),
				attributes("publish", "send", queue, job.Class()))
			defer span.End()
			carrier := propagation.MapCarrier{}
			format.Inject(ctx, carrier)
			job.Options.Traceparent = cmp.Or(carrier[traceparent], job.Options.Traceparent)

			jid, err := next(ctx, job)
			if jid != "" {
				span.SetAttributes(attribute.String("messaging.message.id", jid))
			}
			failed(span, err)
			return jid, err
		}
	}
}

// Process returns middleware of a worker that begins a span "process <queue>" for each attempt. Add
// it before other middleware, so that the span has theirs in it.
func Process(config *Config) millrace.Middleware {
	tracer := config.tracer()
	return func(next millrace.Handler) millrace.Handler {
		return func(ctx context.Context, job *millrace.RawJob) error {
			ctx, options := config.relation(ctx, job)
			ctx, span := tracer.Start(ctx, "process "+job.Queue, append(options, trace.WithSpanKind(trace.SpanKindConsumer),
				attributes("process", "process", job.Queue, job.Class),
				trace.WithAttributes(attribute.String("messaging.message.id", job.JID), attribute.Int("millrace.attempt", job.Attempt)))...)
			var err error = panicked{}
			defer func() {
				failed(span, cause(ctx, job, err))
				span.End() // in a function: called by defer itself, it would throw a panic again
			}()
			err = next(ctx, job)
			return err
		}
	}
}

func (c *Config) tracer() trace.Tracer {
	provider := otel.GetTracerProvider()
	if c != nil && c.TracerProvider != nil {
		provider = c.TracerProvider
	}
	return provider.Tracer(scope, trace.WithInstrumentationVersion(millrace.Version))
}

// relation returns the context and the options with which the span of an attempt refers to the span
// that enqueued the job.
func (c *Config) relation(ctx context.Context, job *millrace.RawJob) (context.Context, []trace.SpanStartOption) {
	sender := format.Extract(ctx, propagation.MapCarrier{traceparent: job.Traceparent()})
	enqueued := trace.SpanContextFromContext(sender)
	alone := []trace.SpanStartOption{trace.WithNewRoot()}
	switch {
	case job.Traceparent() == "" || !enqueued.IsValid():
		return ctx, alone
	case c.parent() == Child || c.parent() == Auto && isFirst(job):
		return sender, nil
	}
	return ctx, append(alone, trace.WithLinks(trace.Link{SpanContext: enqueued}))
}

func (c *Config) parent() Parent {
	if c == nil {
		return Auto
	}
	return c.Parent
}

// isFirst reports whether this is the first attempt of a job that was not scheduled.
func isFirst(job *millrace.RawJob) bool {
	return job.RetryCount == 0 && !gjson.GetBytes(job.Raw, "created_at").Exists()
}

// panicked is the error of a handler that does not return.
type panicked struct{}

func (panicked) Error() string      { return "panic" }
func (panicked) ErrorClass() string { return "panic" }

// cause returns the error of an attempt as the worker sees it: why the context has ended, if that
// made the handler return an error. It is nil if the job was discarded, cancelled or handed back.
func cause(ctx context.Context, job *millrace.RawJob, err error) error {
	ended := context.Cause(ctx)
	switch {
	case err == nil, errors.Is(err, millrace.ErrDiscarded), errors.Is(ended, millrace.ErrStopping), errors.Is(ended, millrace.ErrCancelled):
		return nil
	case errors.Is(err, millrace.ErrHandBack):
		select {
		case <-job.Stopping():
			return nil
		default: // the worker is not stopping, so that is a failure
		}
	case ended != nil && errors.Is(err, ctx.Err()):
		return ended
	}
	return err
}

// failed gives a span its error.
func failed(span trace.Span, err error) {
	if err == nil {
		return
	}
	if !errors.Is(err, panicked{}) {
		span.RecordError(err)
	}
	span.SetAttributes(attribute.String("error.type", millrace.ErrorClass(err)))
	span.SetStatus(codes.Error, err.Error())
}

func attributes(operation, kind, queue, class string) trace.SpanStartEventOption {
	return trace.WithAttributes(
		attribute.String("messaging.system", "rabbitmq"), attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.operation.type", kind), attribute.String("messaging.destination.name", queue),
		attribute.String("millrace.class", class),
	)
}

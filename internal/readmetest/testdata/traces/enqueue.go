// Enqueues three jobs in a span. Run by internal/readmetest, with a broker at MILLRACE_AMQP_URL, a
// queue QUEUE, and a file SPANS for the spans.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/clients/go/otelmillrace"
)

func main() {
	file, err := os.OpenFile(os.Getenv("SPANS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter{json.NewEncoder(file)}))
	client, err := millrace.NewClient(millrace.ClientConfig{
		URL:        os.Getenv("MILLRACE_AMQP_URL"),
		Middleware: []millrace.ClientMiddleware{otelmillrace.Publish(&otelmillrace.Config{TracerProvider: provider})},
	})
	check(err)
	ctx, request := provider.Tracer("test").Start(context.Background(), "POST /orders")
	options := millrace.EnqueueOptions{Queue: os.Getenv("QUEUE")}
	for _, what := range []string{"runs", "fails", "waits"} {
		if what == "waits" {
			options.ScheduledAt = time.Now().Add(time.Second)
		}
		_, err := client.Enqueue(ctx, millrace.Args("Order", what), &options)
		check(err)
	}
	request.End()
	check(client.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

type exporter struct{ *json.Encoder }

func (e exporter) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	for _, span := range spans {
		attributes := map[string]any{}
		for _, a := range span.Attributes() {
			attributes[string(a.Key)] = a.Value.AsInterface()
		}
		parent := ""
		if span.Parent().IsValid() {
			parent = span.Parent().SpanID().String()
		}
		check(e.Encode(map[string]any{
			"name": span.Name(), "kind": span.SpanKind().String(), "trace": span.SpanContext().TraceID().String(),
			"span": span.SpanContext().SpanID().String(), "parent": parent, "links": []string{}, "attributes": attributes,
		}))
	}
	return nil
}

func (exporter) Shutdown(context.Context) error { return nil }

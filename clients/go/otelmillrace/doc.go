// Package otelmillrace makes spans of OpenTelemetry: one for each job that is enqueued, and one for
// each attempt. Names and attributes follow the semantic conventions of messaging systems.
//
//	client, err := millrace.NewClient(millrace.ClientConfig{
//		URL: url, Middleware: []millrace.ClientMiddleware{otelmillrace.Publish(nil)},
//	})
//	worker.Use(otelmillrace.Process(nil))
//
// It is a module of its own, so that programs that do not trace need nothing of OpenTelemetry. The
// trace context travels as EnqueueOptions.Traceparent.
package otelmillrace

package millrace

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

func (w *Worker) perform(ctx context.Context, body []byte, queue string) error {
	job, err := parseJob(&amqp.Delivery{Body: body}, queue)
	if err != nil {
		return err
	}
	job.stopping = w.stopped.c
	h := w.handlers[job.Class]
	if h == nil {
		return unknownClassError{job.Class}
	}
	run := h.run
	for i := len(w.middleware) - 1; i >= 0; i-- {
		run = w.middleware[i](run)
	}
	returned := make(chan error, 1)
	go protect(context.WithValue(ctx, jobKey{}, job), job, run, func(err error) { returned <- err }) // it may end its goroutine
	return <-returned
}

package wire

import (
	"time"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// MovedJob is a job that was taken from one queue as it is published to another. It says so itself, so that a retry comes there too; what is
// no job is passed on as it is.
func MovedJob(d Delivery, queue string, now time.Time) Message {
	m := Message{Exchange: ExchangeRoute, Key: queue, MessageID: Property(d.MessageID), Timestamp: now, Priority: d.Priority,
		Headers: TraceHeaders(TraceOf(d.Headers)), Body: d.Body}
	job, err := ParseJob(d.Body)
	if err != nil {
		return m
	}
	m.Type = Property(job.Class)
	if body, err := shared.SetRaw(d.Body, "queue", shared.Quote(queue)); err == nil {
		m.Body = body
	}
	return m
}

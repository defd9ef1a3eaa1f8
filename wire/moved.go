package wire

import (
	"time"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// MovedJob returns the message that publishes a job of one queue to another. Its member queue names
// the new one, so that a retry goes there too. A message that is not a job is passed on unchanged.
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

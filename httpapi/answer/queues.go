package answer

import "github.com/millrace-jobs/millrace/wire"

// Queue is a job queue. What only the management API knows may be null. Rates are jobs a second.
type Queue struct {
	Name        string      `json:"name"`
	State       string      `json:"state"`
	Ready       int64       `json:"ready"`
	Unacked     *int64      `json:"unacked"`
	Consumers   int64       `json:"consumers"`
	PublishRate *float64    `json:"publish_rate"`
	DeliverRate *float64    `json:"deliver_rate"`
	AckRate     *float64    `json:"ack_rate"`
	GrowthRate  float64     `json:"growth_rate"`
	Bytes       *int64      `json:"bytes"`
	Oldest      *QueueAge   `json:"oldest"` // null: no job waits
	Scheduled   int64       `json:"scheduled"`
	Retries     int64       `json:"retries"`
	Dead        int64       `json:"dead"`
	Leased      int64       `json:"leased"`
	Processes   int         `json:"processes"`
	Slots       int64       `json:"slots"`
	Busy        int64       `json:"busy"`
	RejectsLost *bool       `json:"rejects_lost"`
	Held        *QueueHold  `json:"held,omitempty"`
	Paused      *wire.Pause `json:"paused,omitempty"`
}

// QueueAge is how long the oldest job has waited.
type QueueAge struct {
	Seconds  float64 `json:"seconds"`
	Accuracy string  `json:"accuracy"` // exact or at_least
}

// QueueHold is why due jobs do not enter the queue.
type QueueHold struct {
	Reason string  `json:"reason"`
	Since  float64 `json:"since"`
	Until  float64 `json:"until"`
}

// LiveQueues are the job queues as viewers see them.
type LiveQueues struct {
	Total int     `json:"total"`
	Ready int64   `json:"ready"`
	Items []Queue `json:"items"` // null: there are too many
}

// PurgedJobs is how many jobs were deleted from a queue.
type PurgedJobs struct {
	Purged int `json:"purged"`
}

// MovedJobs is how many jobs were moved to another queue.
type MovedJobs struct {
	Moved    int  `json:"moved"`
	Complete bool `json:"complete"` // all jobs that waited when it began
}

// TypeMove is how far the move of a queue to another type is.
type TypeMove struct {
	wire.TypeMove
	Processes []string `json:"processes"` // live ones that consume the queue
}

// PeekedJob is a message at the head of a queue.
type PeekedJob struct {
	MessageID   string `json:"message_id"`
	Priority    uint8  `json:"priority"`
	Redelivered bool   `json:"redelivered"` // a worker got it before, or it was peeked at
	Size        int    `json:"size"`        // in bytes
	Body        string `json:"body"`
	Encoding    string `json:"encoding"` // utf-8 or base64
	Truncated   bool   `json:"truncated,omitempty"`
}

package wire

// Pause says why workers take no jobs of a queue.
type Pause struct {
	At     float64 `json:"at"`
	Actor  string  `json:"actor,omitempty"`
	Reason string  `json:"reason,omitempty"`

	Move *PauseMove `json:"move,omitempty"` // the queue is being moved to another type
}

package wire

// States of a worker process in its heartbeats.
const (
	StateRunning  = "running"
	StateQuiet    = "quiet"
	StateStopping = "stopping"
)

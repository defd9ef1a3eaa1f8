package wire

// States of a worker process, as it tells them.
const (
	StateRunning  = "running"
	StateQuiet    = "quiet"
	StateStopping = "stopping"
)

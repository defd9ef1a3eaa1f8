package wire

import (
	"fmt"
	"slices"
)

// Pause says why workers take no jobs of a queue.
type Pause struct {
	At     float64 `json:"at"`
	Actor  string  `json:"actor,omitempty"`
	Reason string  `json:"reason,omitempty"`

	Move *PauseMove `json:"move,omitempty"` // the queue is being moved to another type
}

// checkQueue checks a command about a queue.
func (c Command) checkQueue() error {
	if err := CheckQueueName(c.Queue); err != nil {
		return fmt.Errorf("command %s needs a queue: %w", c.Command, err)
	}
	if c.Command == CommandMoveType {
		return c.checkMoveType()
	}
	return nil
}

// aboutQueue reports whether a command is about a queue.
func (c Command) aboutQueue() bool {
	return slices.Contains([]string{CommandPause, CommandResume, CommandMoveType}, c.Command)
}

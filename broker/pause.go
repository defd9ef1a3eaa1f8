package broker

import "context"

// PauseQueue has the broker itself deliver nothing of a queue, by its full name, or go on, where it can do that.
func (m *Management) PauseQueue(ctx context.Context, name string, paused bool) error {
	if !m.features.PausesQueues {
		return nil
	}
	verb := "/resume"
	if paused {
		verb = "/pause"
	}
	return m.put(ctx, "/api/queues/"+segment(m.vhost)+"/"+segment(name)+verb, struct{}{})
}

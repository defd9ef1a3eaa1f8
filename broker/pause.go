package broker

import "context"

// PauseQueue makes the broker itself pause or resume a queue, by its full name. It does nothing on
// a broker that cannot do that.
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

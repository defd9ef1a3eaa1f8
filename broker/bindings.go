package broker

import (
	"context"

	"github.com/millrace-jobs/millrace/wire"
)

// Exchanges returns the names of the virtual host's exchanges, also of the default one.
func (m *Management) Exchanges(ctx context.Context) ([]string, error) {
	var said []struct {
		Name string `json:"name"`
	}
	if err := m.get(ctx, "/api/exchanges/"+segment(m.vhost)+"?columns=name", &said); err != nil {
		return nil, err
	}
	names := make([]string, len(said))
	for i := range said {
		names[i] = said[i].Name
	}
	return names, nil
}

// boundQueue is a binding of an exchange, as the API shows it.
type boundQueue struct {
	Destination string `json:"destination"`
	Type        string `json:"destination_type"`
	Key         string `json:"routing_key"`
}

// BoundTo returns the job queues that are bound to an exchange with the routing key of their jobs.
func (m *Management) BoundTo(ctx context.Context, exchange string) (map[string]bool, error) {
	var said []boundQueue
	if err := m.get(ctx, "/api/exchanges/"+segment(m.vhost)+"/"+segment(exchange)+"/bindings/source", &said); err != nil {
		return nil, err
	}
	bound := map[string]bool{}
	for _, b := range said {
		if b.Type == "queue" && b.Destination == wire.QueuePrefix+b.Key {
			bound[b.Destination] = true
		}
	}
	return bound, nil
}

package broker

import "context"

// Follower is a node of LavinMQ that follows the one that leads, and has all of its data.
type Follower struct {
	ID      string `json:"id"`
	Address string `json:"remote_address"` // of its connection to the leader
}

// Followers returns LavinMQ's followers that are in sync. LavinMQ lists no others, and a single
// node has none.
func (m *Management) Followers(ctx context.Context) ([]Follower, error) {
	var said []struct {
		Followers []Follower `json:"followers"`
	}
	if err := m.get(ctx, "/api/nodes", &said); err != nil {
		return nil, err
	}
	var all []Follower
	for _, n := range said {
		all = append(all, n.Followers...)
	}
	return all, nil
}

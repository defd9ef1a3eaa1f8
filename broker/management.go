package broker

import (
	"context"
)

// Management is the broker's HTTP API.
type Management struct{}

func (m *Management) bound(ctx context.Context, source, destination string) (bool, error) {
	return true, nil
}

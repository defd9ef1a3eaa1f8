//go:build !testcontainers

package brokertest

import (
	"context"
	"fmt"
)

// startContainer fails: the client of Docker takes long to compile, so it has a build tag.
func startContainer(_ context.Context, image string) (*server, error) {
	return nil, fmt.Errorf("`make deps` installs RabbitMQ; a container from %s needs -tags testcontainers", image)
}

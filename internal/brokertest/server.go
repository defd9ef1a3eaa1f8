package brokertest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// Names of environment variables.
const (
	envAMQP       = "MILLRACE_TEST_AMQP_URL"
	envManagement = "MILLRACE_TEST_MANAGEMENT_URL"
	envImage      = "MILLRACE_TEST_IMAGE"
	envLavinMQ    = "MILLRACE_TEST_LAVINMQ"
	envRabbitMQ   = "MILLRACE_TEST_RABBITMQ"
)

const defaultImage = "rabbitmq:3.13-management"

// server is a broker, with the URLs of its administrator.
type server struct {
	amqp, management url.URL
	stream           url.URL             // zero: it does not speak the native stream protocol
	node             *localbroker.Broker // nil: tests may not kill it
	close            func() error
}

func findServer(ctx context.Context) (*server, error) {
	switch {
	case os.Getenv(envAMQP) != "" || os.Getenv(envManagement) != "":
		return givenServer(ctx, os.Getenv(envAMQP), os.Getenv(envManagement))
	case os.Getenv(envImage) != "":
		return startContainer(ctx, os.Getenv(envImage))
	case canStartNode() == nil:
		dir, err := os.MkdirTemp("", "millrace-broker-")
		if err != nil {
			return nil, fmt.Errorf("brokertest: making a folder for the broker: %w", err)
		}
		s, err := startNode(ctx, nodeConfig(dir))
		if err != nil {
			return nil, err
		}
		stop := s.close
		s.close = func() error { return errors.Join(stop(), os.RemoveAll(dir)) }
		return s, nil
	default:
		return startContainer(ctx, defaultImage)
	}
}

// nodeConfig returns the configuration of a private node of the broker under test.
func nodeConfig(dir string) localbroker.Config {
	return localbroker.Config{Dir: dir, LavinMQ: os.Getenv(envLavinMQ)}
}

func canStartNode() error {
	if os.Getenv(envLavinMQ) != "" {
		// If it cannot be started after all, the tests must not use another broker instead.
		return nil
	}
	return localbroker.Available()
}

// givenServer returns a server for a broker that is already running.
func givenServer(ctx context.Context, amqpURL, managementURL string) (*server, error) {
	if amqpURL == "" || managementURL == "" {
		return nil, fmt.Errorf("brokertest: %s and %s must both be set, or neither", envAMQP, envManagement)
	}
	s, err := newServer(amqpURL, managementURL, "")
	if err != nil {
		return nil, err
	}
	port, err := streamPort(ctx, s.management)
	if err != nil {
		return nil, err
	}
	if port != 0 {
		s.stream = url.URL{Scheme: "rabbitmq-stream", User: s.amqp.User, Host: fmt.Sprintf("%s:%d", s.amqp.Hostname(), port)}
	}
	return s, nil
}

// startNode starts a private node. At the end it is killed, because its data is not needed.
func startNode(ctx context.Context, cfg localbroker.Config) (*server, error) {
	node, err := localbroker.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s, err := newServer(node.AMQPURL(), node.ManagementURL(), node.StreamURL())
	if err != nil {
		return nil, errors.Join(err, node.Stop(ctx))
	}
	s.node = node
	s.close = func() error {
		_ = node.Kill() // a test may have killed it already
		return node.Stop(context.Background())
	}
	return s, nil
}

func newServer(amqpURL, managementURL, streamURL string) (*server, error) {
	s := &server{close: func() error { return nil }}
	for target, text := range map[*url.URL]string{&s.amqp: amqpURL, &s.management: managementURL, &s.stream: streamURL} {
		u, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("brokertest: reading a URL: %w", err)
		}
		*target = *u
	}
	s.management.Path = ""
	if s.management.User == nil {
		s.management.User = s.amqp.User
	}
	return s, nil
}

// streamPort returns the port of the native stream protocol, or 0 if the broker does not speak it.
func streamPort(ctx context.Context, management url.URL) (int, error) {
	var overview struct {
		Listeners []struct {
			Protocol string
			Port     int
		}
	}
	if err := call(ctx, management, "GET", "/api/overview", nil, &overview); err != nil {
		return 0, err
	}
	for _, l := range overview.Listeners {
		if l.Protocol == "stream" {
			return l.Port, nil
		}
	}
	return 0, nil
}

//go:build testcontainers

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// containerConfig makes the broker listen on the ports that are visible from outside, because the
// native stream protocol sends clients the address to connect to.
const containerConfig = `loopback_users = none
listeners.tcp.1 = 0.0.0.0:%[1]d
management.tcp.port = %[2]d
stream.listeners.tcp.1 = 0.0.0.0:%[3]d
stream.advertised_host = 127.0.0.1
stream.advertised_port = %[3]d
disk_free_limit.absolute = 10MB
collect_statistics_interval = 1000
`

// startContainer runs a broker from an image. Its command must start RabbitMQ and read
// /etc/rabbitmq, as that of the official image does. Docker must be on this machine: the tests
// connect to 127.0.0.1.
func startContainer(ctx context.Context, image string) (*server, error) {
	const count = 3
	ports, err := freePorts(count)
	if err != nil {
		return nil, err
	}
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{
		ContainerRequest: containerRequest(image, ports),
		Started:          true,
	})
	if err != nil {
		err = fmt.Errorf("brokertest: starting a container from %s (`make deps` installs RabbitMQ instead): %w", image, err)
		return nil, errors.Join(err, testcontainers.TerminateContainer(c))
	}
	s, err := newServer(
		fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", ports[0]),
		fmt.Sprintf("http://guest:guest@127.0.0.1:%d", ports[1]),
		fmt.Sprintf("rabbitmq-stream://guest:guest@127.0.0.1:%d/", ports[2]))
	if err == nil {
		err = localbroker.WaitReady(ctx, s.amqp.String(), s.management.String())
	}
	if err != nil {
		return nil, errors.Join(err, testcontainers.TerminateContainer(c))
	}
	s.close = func() error { return testcontainers.TerminateContainer(c) }
	return s, nil
}

func containerRequest(image string, ports []int) testcontainers.ContainerRequest {
	config := fmt.Sprintf(containerConfig, ports[0], ports[1], ports[2])
	bindings := network.PortMap{}
	request := testcontainers.ContainerRequest{
		Image: image,
		Env:   map[string]string{"RABBITMQ_NODENAME": "rabbit@localhost"},
		Files: []testcontainers.ContainerFile{
			file("/etc/rabbitmq/enabled_plugins", "[rabbitmq_management,rabbitmq_stream].\n"),
			file("/etc/rabbitmq/conf.d/90-brokertest.conf", config),
		},
		HostConfigModifier: func(host *container.HostConfig) { host.PortBindings = bindings },
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, port := range ports {
		spec := strconv.Itoa(port) + "/tcp"
		request.ExposedPorts = append(request.ExposedPorts, spec)
		bindings[network.MustParsePort(spec)] = []network.PortBinding{{HostIP: loopback, HostPort: strconv.Itoa(port)}}
	}
	return request
}

func file(path, text string) testcontainers.ContainerFile {
	const readable = 0o644
	return testcontainers.ContainerFile{ContainerFilePath: path, Reader: strings.NewReader(text), FileMode: readable}
}

// freePorts returns free ports. Another process may take one before the broker does. Then the
// broker does not start, and says why.
func freePorts(n int) ([]int, error) {
	const first = 31000 // above those of localbroker, and below the range of the kernel
	var ports []int
	for next := first; len(ports) < n; next++ {
		port, err := localbroker.FreePort(next)
		if err != nil {
			return nil, err
		}
		ports, next = append(ports, port), port
	}
	return ports, nil
}

package localbroker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Free ports come in blocks below the range from which the kernel takes ports for outgoing
// connections. The process that listens on the first port of a block owns it. So nodes that start
// at the same time, in several processes, do not choose the same ports.
const (
	firstBlock = 20000
	blocks     = 1000
	blockSize  = 10
)

// ports are the ports of one node, all on 127.0.0.1.
type ports struct {
	amqp, management, stream int
	epmd, dist               int // Erlang's name server, and connections of other nodes

	block int
	owner net.Listener // holds the block while it is open; accepts nothing
}

// choosePorts takes the configured ports, and free ones for the others.
func choosePorts(cfg Config) (ports, error) {
	for _, port := range []int{cfg.AMQPPort, cfg.ManagementPort, cfg.StreamPort} {
		if port != 0 && !isFree(port) {
			return ports{}, fmt.Errorf("localbroker: port %d on 127.0.0.1 is in use", port)
		}
	}
	first := rand.IntN(blocks)
	for i := range blocks {
		p := ports{block: firstBlock + (first+i)%blocks*blockSize}
		if p.reserve() == nil && p.takeBlock(cfg) {
			return p, nil
		}
		p.release()
	}
	return ports{}, errors.New("localbroker: no free ports on 127.0.0.1")
}

// takeBlock sets the ports, and reports whether all that it chose are free.
func (p *ports) takeBlock(cfg Config) bool {
	p.amqp, p.management, p.stream = cfg.AMQPPort, cfg.ManagementPort, cfg.StreamPort
	for i, port := range []*int{&p.amqp, &p.management, &p.stream, &p.epmd, &p.dist} {
		if *port != 0 {
			continue
		}
		if *port = p.block + 1 + i; !isFree(*port) {
			return false
		}
	}
	return true
}

// reserve takes the block for this process, unless it has it already.
func (p *ports) reserve() error {
	if p.owner != nil {
		return nil
	}
	owner, err := listen(p.block)
	if err != nil {
		return fmt.Errorf("localbroker: reserving ports: %w", err)
	}
	p.owner = owner
	return nil
}

func (p *ports) release() {
	if p.owner != nil {
		_ = p.owner.Close()
		p.owner = nil
	}
}

// FreePort returns the first port from the given one on that is free on 127.0.0.1.
func FreePort(from int) (int, error) {
	for port := from; port <= 65535; port++ {
		if isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("localbroker: no free port on 127.0.0.1 from %d on", from)
}

func isFree(port int) bool {
	l, err := listen(port)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

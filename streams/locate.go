package streams

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
)

// role is the role that a node must have for a stream.
type role int

const (
	anyReplica role = iota // has a replica; the leader has one too
	leader                 // leads the stream; only the leader knows where it ends
)

func (r role) String() string {
	if r == leader {
		return "leader"
	}
	return "replica"
}

// located says which nodes have a stream. A node's name is the host and port that it advertises.
type located struct {
	leader   string   // empty while the stream has none
	replicas []string // the nodes that follow the leader
}

// nodes returns the nodes that have the role. Replicas come before the leader, which has the most
// work.
func (at located) nodes(r role) []string {
	var all []string
	if r == anyReplica {
		all = slices.Clone(at.replicas)
	}
	if at.leader != "" {
		all = append(all, at.leader)
	}
	return all
}

// suits reports whether the node has the role. A broker that does not report the node's name may
// have only one node.
func (at located) suits(node string, r role) bool {
	nodes := at.nodes(r)
	return slices.Contains(nodes, node) || node == "" && len(nodes) > 0 && len(at.replicas) == 0
}

// locate asks which nodes have the stream. It returns ErrNoStream if the stream does not exist.
func (l *link) locate(stream string) (located, error) {
	answer, err := l.ask(newRequest(cmdMetadata).u32(1).str(stream))
	if err != nil {
		return located{}, err
	}
	at, code := readMetadata(answer)
	if answer.err != nil {
		return located{}, lost("reading: %w", answer.err)
	}
	if code == codeNoStream {
		return located{}, fmt.Errorf("streams: %w: %s", ErrNoStream, stream)
	}
	return at, nil
}

// readMetadata reads the response to a metadata request for one stream.
func readMetadata(c *content) (at located, code uint16) {
	nodes := map[uint16]string{}
	for n := c.u32(); n > 0 && c.err == nil; n-- {
		reference, host, port := c.u16(), c.str(), c.u32()
		nodes[reference] = net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10))
	}
	c.u32() // the number of streams: one
	c.str()
	code = c.u16()
	at.leader = nodes[c.u16()]
	for n := c.u32(); n > 0 && c.err == nil; n-- {
		if node := nodes[c.u16()]; node != "" {
			at.replicas = append(at.replicas, node)
		}
	}
	return at, code
}

// readNode reads the name of the answering node from the response to cmdOpen. The name stays empty
// if the broker does not report it.
func (l *link) readNode(c *content) error {
	properties := map[string]string{}
	if c.left > 0 {
		for n := c.u32(); n > 0 && c.err == nil; n-- {
			key := c.str()
			properties[key] = c.str()
		}
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		return lost("reading: %w", err)
	}
	if host, port := properties["advertised_host"], properties["advertised_port"]; host != "" && port != "" {
		l.node = net.JoinHostPort(host, port)
	}
	return nil
}

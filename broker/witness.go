package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// A node's witness is a transient message in a durable classic queue of its own on that node. The
// message is gone once the node, or the virtual host on it, has restarted.

// Fingerprint identifies one run of a RabbitMQ: that of its nodes and of the links between them. As
// long as it stays the same, no classic queue has lost a message.
type Fingerprint struct {
	Nodes map[string]string // by running node, the id of its witness
	Links map[string]string // by two nodes, the ports of the connection between them, as the first node sees it
}

// String is the fingerprint as the journal has it; empty if it identifies nothing.
func (f Fingerprint) String() string {
	if len(f.Nodes) == 0 {
		return ""
	}
	var parts []string
	for _, of := range []map[string]string{f.Nodes, f.Links} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			parts = append(parts, name+"="+of[name])
		}
	}
	return strings.Join(parts, " ")
}

// WitnessQueue is the queue of a node's witness.
func WitnessQueue(node string) string {
	sum := sha256.Sum256([]byte(node))
	return wire.WitnessPrefix + hex.EncodeToString(sum[:4])
}

// IsWitnessQueue reports whether a queue is, by its name, that of a node's witness.
func IsWitnessQueue(name string) bool { return witnessName.MatchString(name) }

var witnessName = regexp.MustCompile("^" + regexp.QuoteMeta(wire.WitnessPrefix) + "[0-9a-f]{8}$")

// Witness returns the id of a node's witness; empty if there is none, or if its queue is away.
func (c *Conn) Witness(ctx context.Context, node string) (id string, err error) {
	name := WitnessQueue(node)
	within, cancel := context.WithTimeout(ctx, witnessPatience)
	defer cancel()
	for range looks { // another sidecar may be looking at it
		err = c.queueRequest(within, name, func(ch *amqp.Channel) error {
			d, found, err := ch.Get(name, false)
			if err != nil || !found {
				return err
			}
			id = d.MessageId
			return d.Reject(true)
		})
		if err != nil || id != "" || pause.For(within, lookAgain) != nil {
			break
		}
	}
	var refusal *QueueError
	if errors.As(err, &refusal) || within.Err() != nil && ctx.Err() == nil {
		return "", nil
	}
	return id, err
}

// witnessPatience is how long a node may take to show its witness. A node that is frozen does not.
const witnessPatience = 2 * time.Second

const (
	looks     = 3
	lookAgain = 30 * time.Millisecond
)

// DeclareWitnessQueue makes the queue of a witness on the node of this connection.
func (c *Conn) DeclareWitnessQueue(ctx context.Context, node string) error {
	name := WitnessQueue(node)
	return c.queueRequest(ctx, name, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "classic"})
		return err
	})
}

// MakeWitness gives a node a new witness with an id. Its queue must be there. What the queue has
// from before goes.
func (c *Conn) MakeWitness(ctx context.Context, node, id string) error {
	name := WitnessQueue(node)
	if err := c.queueRequest(ctx, name, func(ch *amqp.Channel) error {
		_, err := ch.QueuePurge(name, false)
		return err
	}); err != nil {
		return err
	}
	pub, err := c.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	return pub.SendMandatory(ctx, wire.Message{Key: name, MessageID: id, Transient: true, Body: []byte(id)})
}

// DeclareQueueOn makes a durable classic queue on a node of the cluster. One that is on another node, as definitions that were imported
// put it on any, is made again.
func (m *Management) DeclareQueueOn(ctx context.Context, name, node string) error {
	path := "/api/queues/" + segment(m.vhost) + "/" + segment(name)
	for again := false; ; again = true {
		err := m.put(ctx, path, map[string]any{"durable": true, "node": node, "arguments": map[string]string{"x-queue-type": "classic"}})
		if err != nil {
			return err
		}
		var said struct {
			Node string `json:"node"`
		}
		if err := m.get(ctx, path+"?columns=node", &said); err != nil {
			return err
		}
		switch {
		case said.Node == node:
			return nil
		case again:
			return fmt.Errorf("broker: queue %s is on %s, not on %s", name, said.Node, node)
		}
		if _, err := m.do(ctx, http.MethodDelete, path, nil, nil); err != nil {
			return err
		}
	}
}

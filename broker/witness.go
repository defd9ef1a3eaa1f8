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

// A node's witness is a transient message in its own durable classic queue on that node. The
// message is gone after a restart of the node, or of the virtual host on it.

// Fingerprint identifies one run of a RabbitMQ broker: of its nodes, and of the links between them.
// While it stays the same, no classic queue has lost a message.
type Fingerprint struct {
	Nodes map[string]string // running node → id of its witness
	Links map[string]string // two nodes → ports of their connection
}

// FingerprintOf returns the fingerprint of the nodes that run, still without witnesses. Both ends
// report a link, but a node that has just started reports none yet: what the other ends report is
// then enough.
func FingerprintOf(nodes []Node) Fingerprint {
	f := Fingerprint{Nodes: map[string]string{}, Links: map[string]string{}}
	for _, n := range nodes {
		if n.Running {
			f.Nodes[n.Name] = ""
		}
	}
	reports := map[string][]string{}
	for _, n := range nodes {
		if !n.Running || !slices.ContainsFunc(n.Links, Link.known) {
			continue
		}
		for peer := range f.Nodes {
			if peer != n.Name {
				between, ports := n.linkTo(peer)
				reports[between] = append(reports[between], ports)
			}
		}
	}
	for between, ports := range reports {
		if slices.Max(ports) != "" {
			slices.Sort(ports)
			f.Links[between] = strings.Join(slices.Compact(ports), ",")
		}
	}
	return f
}

// linkTo names a node and a peer in order, and returns the ports of the link between them in the
// same order, or "" if the node does not report one.
func (n Node) linkTo(peer string) (between, ports string) {
	var l Link
	if i := slices.IndexFunc(n.Links, func(l Link) bool { return l.Peer == peer && l.known() }); i >= 0 {
		l = n.Links[i]
	}
	first, second := n.Name, peer
	if peer < n.Name {
		first, second = peer, n.Name
		l.Port, l.PeerPort = l.PeerPort, l.Port
	}
	if l.known() {
		ports = fmt.Sprintf("%d-%d", l.Port, l.PeerPort)
	}
	return first + ">" + second, ports
}

// known reports whether the ports of the link are, by which it differs from a later one.
func (l Link) known() bool { return l.Port != 0 && l.PeerPort != 0 }

// Linked reports whether there is a link between each two of the nodes. Without that, as where they
// speak TLS, nothing shows that a link has broken.
func (f Fingerprint) Linked() bool { return len(f.Links) == len(f.Nodes)*(len(f.Nodes)-1)/2 }

// String returns the fingerprint as the journal has it, or "" if it identifies nothing.
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

// WitnessQueue returns the name of the queue of a node's witness.
func WitnessQueue(node string) string {
	sum := sha256.Sum256([]byte(node))
	return wire.WitnessPrefix + hex.EncodeToString(sum[:4])
}

// IsWitnessQueue reports whether a name is that of the queue of a witness.
func IsWitnessQueue(name string) bool { return witnessName.MatchString(name) }

var witnessName = regexp.MustCompile("^" + regexp.QuoteMeta(wire.WitnessPrefix) + "[0-9a-f]{8}$")

// Witnesses are the witnesses of a broker's nodes.
type Witnesses struct{ conn *Conn }

// Witnesses returns the witnesses of the broker's nodes, as this connection reaches them.
func (c *Conn) Witnesses() Witnesses { return Witnesses{c} }

// ErrSilent is returned if the queue of a witness does not answer: its node is frozen or
// overloaded.
var ErrSilent = errors.New("broker: the queue of a witness does not answer")

// ID returns the id of a node's witness, or "" if there is none. Another sidecar may hold it for a
// moment, or longer if it was killed meanwhile. So after the queue has answered that it is not
// there, ID looks again for a while. It returns ErrSilent once a look has taken longer than
// patience.
func (w Witnesses) ID(ctx context.Context, node string, while, patience time.Duration) (string, error) {
	var missing time.Time
	for {
		id, err := w.look(ctx, node, patience)
		if id != "" || err != nil {
			return id, err
		}
		if missing.IsZero() {
			missing = time.Now()
		}
		if time.Since(missing) >= while {
			return "", nil
		}
		if err := pause.For(ctx, lookAgain); err != nil {
			return "", err
		}
	}
}

// look takes the witness and returns it to its queue.
func (w Witnesses) look(ctx context.Context, node string, patience time.Duration) (string, error) {
	name := WitnessQueue(node)
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, err := onQueue(within, w.conn, name, func(ch *amqp.Channel) (string, error) {
		d, found, err := ch.Get(name, false)
		if err != nil || !found {
			return "", err
		}
		return d.MessageId, d.Reject(true)
	})
	var refusal *QueueError
	switch {
	case IsMissing(err):
		return "", nil
	case errors.As(err, &refusal) || within.Err() != nil && ctx.Err() == nil:
		return "", ErrSilent
	}
	return id, err
}

const lookAgain = 30 * time.Millisecond

// DeclareQueue declares the queue of a witness on the node of this connection.
func (w Witnesses) DeclareQueue(ctx context.Context, node string) error {
	name := WitnessQueue(node)
	return w.conn.Queues().request(ctx, name, declaring(name, true, false, false, amqp.Table{"x-queue-type": "classic"}))
}

// Make gives a node a new witness with an id, and deletes the old one. The queue must exist.
func (w Witnesses) Make(ctx context.Context, node, id string) error {
	name := WitnessQueue(node)
	if err := w.conn.Queues().request(ctx, name, func(ch *amqp.Channel) error {
		_, err := ch.QueuePurge(name, false)
		return err
	}); err != nil {
		return err
	}
	pub, err := w.conn.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	return pub.SendMandatory(ctx, wire.Message{Key: name, MessageID: id, Transient: true, Body: []byte(id)})
}

// DeclareTransient declares a queue that lives exactly as long as the broker runs. It returns
// ErrRefused if this broker allows none. A RabbitMQ whose settings forbid them ends the connection
// with that answer.
func (w Witnesses) DeclareTransient(ctx context.Context, name string) error {
	err := w.conn.request(ctx, declaring(name, false, false, false, nil))
	var answer *amqp.Error
	if errors.As(err, &answer) && (!errors.Is(err, ErrLost) || answer.Code == amqp.InternalError) {
		return fmt.Errorf("broker: declare %s: %w: %w", name, ErrRefused, err)
	}
	if err != nil {
		return fmt.Errorf("broker: declare %s: %w", name, err)
	}
	return nil
}

// DeclareQueueOn declares a durable classic queue on a node of the cluster. If the queue is on
// another node, it is deleted and declared again. Imported definitions may put a queue on any node.
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

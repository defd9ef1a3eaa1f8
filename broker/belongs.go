package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// ErrUnproven is returned when a management API is not proven to belong to the broker that AMQP
// reaches. Millrace does not use the API without that proof.
var ErrUnproven = errors.New("not proven to belong to the broker that AMQP reaches")

// OtherBrokerError is returned when a management API belongs to another broker than the one that
// AMQP reaches. Millrace never uses that API.
type OtherBrokerError struct {
	Host, Broker         string // of the management API
	AMQPHost, AMQPBroker string
}

func (e *OtherBrokerError) Error() string {
	return fmt.Sprintf("the management API at %s (%s) belongs to another broker than AMQP at %s (%s)", e.Host, e.Broker, e.AMQPHost, e.AMQPBroker)
}

// newsPatience is how long a node may take to learn of a queue that was declared on another node of
// its cluster.
const newsPatience = 1500 * time.Millisecond

// proof records which hosts of a management API belong to the broker that AMQP reaches. To prove
// it, Millrace declares a queue over AMQP, with a name that the broker generates, and looks for it
// on the host. Names of nodes and clusters prove nothing, because containers of one image often
// share them.
type proof struct {
	hosts          *managementHosts
	amqp           Config
	user, password string
	vhost          string

	mu     sync.Mutex
	proven map[hosts.Target]bool
	busy   map[hosts.Target]*sync.Mutex // locked while a host is checked
}

// alone waits until no other goroutine checks the host. The caller calls end after its own check.
func (p *proof) alone(to hosts.Target) (end func()) {
	p.mu.Lock()
	busy := p.busy[to]
	if busy == nil {
		busy = &sync.Mutex{}
		p.busy[to] = busy
	}
	p.mu.Unlock()
	busy.Lock()
	return busy.Unlock
}

// OnlyOf restricts m to hosts that are proven to belong to the broker that cfg reaches. Each host
// is checked before its first answer, and again after it was unreachable. OnlyOf must be called
// before the first request.
func (m *Management) OnlyOf(cfg Config) {
	m.hosts.proof = &proof{hosts: m.hosts, amqp: cfg, user: m.user, password: m.password, vhost: m.vhost,
		proven: map[hosts.Target]bool{}, busy: map[hosts.Target]*sync.Mutex{}}
}

// CheckHosts checks all hosts, not only the one that answers first. Its error names the hosts that
// belong to another broker. A host that does not answer in time is checked later, before it is
// used.
func (m *Management) CheckHosts(ctx context.Context) error {
	all := m.hosts.addresses()
	if len(all) == 1 {
		return nil // any request checks the only host
	}
	var faults []error
	for _, err := range m.hosts.each(ctx, all, m.hosts.prove) {
		var other *OtherBrokerError
		if errors.As(err, &other) {
			faults = append(faults, other)
		}
	}
	return errors.Join(faults...)
}

func (p *proof) has(to hosts.Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proven[to]
}

func (p *proof) set(to hosts.Target, proven bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proven[to] = proven
}

// prove returns nil if a host is proven to belong to the broker.
func (p *proof) prove(ctx context.Context, to hosts.Target) error {
	if p.has(to) {
		return nil
	}
	defer p.alone(to)()
	if p.has(to) {
		return nil
	}
	if err := p.hosts.greet(ctx, to); err != nil {
		return err // the host does not answer, so it could not show the queue
	}
	conn, err := Dial(ctx, p.amqp)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnproven, err)
	}
	defer func() { go conn.Close() }() // deletes the queue, too; the node may not answer
	name, err := conn.Queues().private(ctx)
	if err != nil {
		return fmt.Errorf("%w: declare a queue to find there: %w", ErrUnproven, err)
	}
	return p.find(ctx, to, conn, name)
}

// find looks for the queue on a host of the management API, and marks the host as proven if it is
// there.
func (p *proof) find(ctx context.Context, to hosts.Target, conn *Conn, queue string) error {
	deadline := time.Now().Add(newsPatience)
	for {
		a, err := p.hosts.send(ctx, to, p.question("/api/queues/"+segment(p.vhost)+"/"+segment(queue)))
		switch {
		case err != nil:
			return err
		case a.err == nil:
			p.set(to, true)
			return nil
		case statusOf(a.err) != http.StatusNotFound:
			return fmt.Errorf("%w: %s answers user %s: %w", ErrUnproven, to.Host, p.user, a.err)
		case conn.Err() != nil:
			return fmt.Errorf("%w: %w", ErrUnproven, conn.Err())
		case time.Now().After(deadline):
			return &OtherBrokerError{Host: to.Host, Broker: p.describe(ctx, to), AMQPHost: conn.Host(), AMQPBroker: conn.describe()}
		}
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (p *proof) question(path string) request {
	return request{method: http.MethodGet, path: path, user: p.user, password: p.password}
}

// describe returns the product, version, node and cluster of the broker behind a host.
func (p *proof) describe(ctx context.Context, to hosts.Target) string {
	a, err := p.hosts.send(ctx, to, p.question("/api/overview"))
	var said overview
	if err != nil || a.err != nil || json.Unmarshal(a.body, &said) != nil {
		return "unknown"
	}
	product, version := said.product()
	return describe(product, version, said.Node, said.Cluster)
}

package streams

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// nodeEach limits connecting to one of several nodes, and asking it where a stream is.
const nodeEach = 2 * time.Second

// nodes are the nodes that speak the stream protocol: the given hosts, and the nodes that these
// name.
//
// A given host is used under its own address if its node has the needed role. In that case it does
// not matter whether this machine can reach the advertised names.
type nodes struct {
	cfg   Config
	as    address // the address, at any host
	given []string
	order hosts.Order

	mu      sync.Mutex
	learned []string // nodes that were advertised and not given
	down    error    // why the last attempt reached none; nil if only a leader was missing
}

func newNodes(cfg Config) (*nodes, error) {
	as, given, err := parseStreamURLs(cfg.StreamURL)
	if err != nil {
		return nil, err
	}
	n := &nodes{cfg: cfg, as: as, given: given}
	n.order.Near = cfg.Hosts
	return n, nil
}

// lost makes the next connection try other nodes first.
func (n *nodes) lost(l *link) { n.order.Lost(l.to) }

// drop closes a connection to a node that is dead or too slow. The next connection tries other
// nodes first. If the caller gave up, drop does not blame the node.
func (n *nodes) drop(ctx context.Context, l *link) {
	l.close()
	if !errors.Is(ctx.Err(), context.Canceled) {
		n.lost(l)
	}
}

// answer returns nil if any node answers.
func (n *nodes) answer(ctx context.Context) error {
	l, err := n.reach(ctx, func(ctx context.Context, to hosts.Target) (*link, error) {
		return dial(ctx, n.cfg, n.as.at(to), "looks")
	})
	if err != nil {
		return err
	}
	l.close()
	return nil
}

// dial connects to a node that has the role for the stream.
func (n *nodes) dial(parent context.Context, stream string, r role, purpose string) (*link, error) {
	s := search{nodes: n, stream: stream, role: r, purpose: purpose, parent: parent}
	l, err := n.reach(parent, s.from)
	if s.final != nil {
		return nil, s.final
	}
	return l, err
}

// reach connects through the given hosts. If they all fail, it tries those that were learned.
func (n *nodes) reach(ctx context.Context, connect func(context.Context, hosts.Target) (*link, error)) (l *link, err error) {
	connectOnce := func(ctx context.Context, to hosts.Target) (err error) {
		l, err = connect(ctx, to)
		return err
	}
	learned := n.known()
	limits := hosts.Limits{Each: nodeEach, Only: n.cfg.Timeout}
	if len(learned) > 0 {
		limits.Only = nodeEach
	}
	err = n.order.Connect(ctx, n.given, limits, connectOnce)
	if err != nil && ctx.Err() == nil && len(learned) > 0 && n.order.Connect(ctx, learned, limits, connectOnce) == nil {
		err = nil
	}
	if ctx.Err() != nil {
		return l, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = err
	if errors.Is(err, errNoRole) {
		n.down = nil
	}
	return l, err
}

// whyDown returns why the last attempt reached no node, or nil if it reached one.
func (n *nodes) whyDown() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}

func (n *nodes) known() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.learned)
}

// learn remembers the other nodes that a node names.
func (n *nodes) learn(from string, at located) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, node := range at.nodes(anyReplica) {
		if from != "" && node != from && !slices.Contains(n.learned, node) && !slices.Contains(n.given, node) {
			n.learned = append(n.learned, node)
		}
	}
}

// errNoRole is returned when nodes answer and none has the needed role. A stream without a leader
// is no reason to read over AMQP.
var errNoRole = errors.New("no node has the role now")

// search looks for a node that has a role.
type search struct {
	*nodes
	stream, purpose string
	role            role
	parent          context.Context //nolint:containedctx // the search ends with the call
	tried           []string        // nodes without the role, by the names that they advertise
	final           error           // set when no node can have the role
}

// from connects to a node. If that node does not have the role, from connects to one of the nodes
// that it names.
func (s *search) from(ctx context.Context, to hosts.Target) (*link, error) {
	l, err := dial(ctx, s.cfg, s.as.at(to), s.purpose)
	if err != nil {
		return nil, err
	}
	at, err := s.locate(ctx, l)
	if err == nil {
		s.learn(l.node, at)
	}
	if err == nil && at.suits(l.node, s.role) {
		l.serves[s.stream] = true
		return l, nil
	}
	if err != nil && !errors.Is(err, ErrNoStream) && !errors.Is(err, ErrRefused) {
		s.drop(ctx, l)
		return nil, err
	}
	l.close()
	if err != nil { // the other nodes would answer the same
		s.final = err
		return nil, nil //nolint:nilnil // ends the search
	}
	s.tried = append(s.tried, l.node)
	if len(at.nodes(s.role)) == 0 {
		return nil, lost("%s has no %s: %w", s.stream, s.role, errNoRole)
	}
	return s.advertised(at, lost("%s has no %s at %s", s.stream, s.role, to.Host))
}

// locate asks which nodes have the stream.
func (s *search) locate(ctx context.Context, l *link) (located, error) {
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	return l.locate(s.stream)
}

// advertised connects to one of the nodes that have the role, by the names that they advertise.
func (s *search) advertised(at located, reason error) (*link, error) {
	failures := hosts.Errors{reason}
	for _, node := range s.order.Sorted(at.nodes(s.role)) {
		if slices.Contains(s.tried, node) {
			continue
		}
		s.tried = append(s.tried, node)
		var l *link
		err := s.order.Connect(s.parent, []string{node}, hosts.Limits{Each: nodeEach, Only: nodeEach}, func(ctx context.Context, to hosts.Target) (err error) {
			l, err = dial(ctx, s.cfg, s.as.at(to), s.purpose)
			return err
		})
		if err == nil {
			l.serves[s.stream] = true
			return l, nil
		}
		failures = append(failures, err)
	}
	return nil, failures
}

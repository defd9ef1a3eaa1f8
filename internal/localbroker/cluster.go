package localbroker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
)

// clusterSize is the number of nodes: the fewest of which one can fail.
const clusterSize = 3

// ClusterConfig says what the nodes of a cluster run, and where.
type ClusterConfig struct {
	// Dir holds a directory for each node. It is created if it is missing. Required, and not used
	// before.
	Dir string

	// RabbitMQ and LavinMQ are as in Config.
	RabbitMQ, LavinMQ string

	// NetTickTime is roughly how long a RabbitMQ node is silent before the others consider it dead.
	// It defaults to RabbitMQ's own 60 seconds.
	NetTickTime time.Duration

	// Packaged leaves out the files in /etc/rabbitmq/conf.d. scripts/rabbitmq4.sh writes one there
	// with a default of RabbitMQ's own that Debian's package changes: no transient queues.
	Packaged bool

	// Extension adds plugins and settings to RabbitMQ's nodes.
	Extension Extension

	// Log gets messages about starts and stops. By default nothing is logged.
	Log *slog.Logger
}

// Cluster is three private nodes that form a cluster, on 127.0.0.11 to 127.0.0.13. RabbitMQ's nodes
// share an epmd and a cookie. In a partition, the smaller side pauses (RabbitMQ 3) or waits
// (RabbitMQ 4). LavinMQ's nodes have the same ports, and an etcd each.
//
// Each node is a Broker, which can be killed, stopped, frozen and started again.
type Cluster struct {
	Nodes []*Broker

	etcds []*Etcd
	epmd  *process
	log   *slog.Logger
}

// StartCluster starts three nodes and waits until all can be used. ctx limits only the start: the
// nodes run until Stop or the end of this process.
func StartCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	tools, err := Config{RabbitMQ: cfg.RabbitMQ, LavinMQ: cfg.LavinMQ}.tools()
	if err != nil {
		return nil, err
	}
	if cfg.Dir == "" {
		return nil, errors.New("localbroker: ClusterConfig.Dir is empty")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("localbroker: finding %s: %w", cfg.Dir, err)
	}
	c := &Cluster{log: cfg.Log}
	for i := range clusterSize {
		b := &Broker{dir: filepath.Join(dir, fmt.Sprintf("node%d", i+1)), tools: tools, log: cfg.Log}
		if b.ports, err = choosePorts(Config{}); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
		c.Nodes = append(c.Nodes, b)
	}
	if tools.ctl != "" {
		err = c.seatRabbitMQ(ctx, cfg)
	} else {
		err = c.seatLavinMQ(ctx, dir)
	}
	if err == nil {
		err = c.startAll(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// startAll starts the nodes in parallel, because each may wait for the others.
func (c *Cluster) startAll(ctx context.Context) error {
	errs := make([]error, len(c.Nodes))
	var all sync.WaitGroup
	for i, b := range c.Nodes {
		all.Go(func() { errs[i] = startPatiently(ctx, b) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := c.waitTogether(ctx); err != nil {
		return err
	}
	if err := WaitReady(ctx, c.Nodes[0].AMQPURL(), c.Nodes[0].ManagementURL()); err != nil {
		return err
	}
	for _, b := range c.Nodes {
		if b.HasErlang() {
			if _, err := b.Eval(ctx, syncTables); err != nil {
				return err
			}
		}
	}
	return nil
}

// startPatiently starts a node, and tries again if it exits. RabbitMQ 3.10 exits if another node
// starts or stops while the two compare their feature flags.
func startPatiently(ctx context.Context, b *Broker) (err error) {
	const tries, rest = 3, time.Second
	for range tries {
		if err = b.Restart(ctx); err == nil || pause.For(ctx, rest) != nil {
			break
		}
	}
	return err
}

// waitTogether waits until the first node reports that all nodes run.
func (c *Cluster) waitTogether(ctx context.Context) error {
	b := c.Nodes[0]
	if !b.HasErlang() {
		return nil // a follower only answers when it has found its leader
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := poll(ctx, b.Exited(), func(ctx context.Context) error {
		running, err := b.Eval(ctx, "length(rabbit_nodes:all_running()).")
		if err == nil && running != fmt.Sprint(len(c.Nodes)) {
			err = fmt.Errorf("%s of %d nodes run", running, len(c.Nodes))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("localbroker: waiting for the cluster in %s: %w", b.dir, err)
	}
	return nil
}

// Stop kills all nodes, their epmd and their etcds. The data stays in Dir.
func (c *Cluster) Stop() error {
	var errs []error
	for _, b := range c.Nodes {
		b.mu.Lock()
		errs = append(errs, b.halt())
		b.ports.release()
		b.mu.Unlock()
	}
	for _, e := range c.etcds {
		errs = append(errs, e.Kill())
	}
	return errors.Join(append(errs, c.epmd.kill())...)
}

// seatRabbitMQ gives the nodes names and a list of each other, and starts their epmd.
func (c *Cluster) seatRabbitMQ(ctx context.Context, cfg ClusterConfig) error {
	first, cookie := c.Nodes[0], newCookie()
	config := &strings.Builder{}
	config.WriteString("cluster_partition_handling = pause_minority\n" +
		"cluster_formation.peer_discovery_backend = classic_config\n")
	for i := range c.Nodes {
		fmt.Fprintf(config, "cluster_formation.classic_config.nodes.%d = %s\n", i+1, memberName(i))
	}
	if cfg.NetTickTime != 0 {
		fmt.Fprintf(config, "net_ticktime = %d\n", int(cfg.NetTickTime.Seconds()))
	}
	for i, b := range c.Nodes {
		b.ports.epmd = first.ports.epmd
		b.seat = seat{
			name: memberName(i), host: host(i), cookie: cookie, config: config.String(), shared: true, packaged: cfg.Packaged,
			extension: cfg.Extension,
		}
	}
	if err := first.writeFiles(); err != nil {
		return err
	}
	var err error
	c.epmd, err = startEpmd(ctx, first.tools.epmd, first.env(), first.ports.epmd)
	return err
}

func memberName(i int) string { return fmt.Sprintf("millrace%d@localhost", i+1) }

// Cut disconnects a RabbitMQ node from other nodes, or from all if none are named, until Heal.
// Clients can still reach it.
func (c *Cluster) Cut(ctx context.Context, node int, from ...int) error {
	return c.forLinks(ctx, node, from, "erlang:set_cookie(N, cut), erlang:disconnect_node(N)")
}

// Heal undoes Cut.
func (c *Cluster) Heal(ctx context.Context, node int, from ...int) error {
	return c.forLinks(ctx, node, from, "erlang:set_cookie(N, erlang:get_cookie()), net_kernel:connect_node(N)")
}

func (c *Cluster) forLinks(ctx context.Context, node int, others []int, do string) error {
	_, err := c.Nodes[node].Eval(ctx, fmt.Sprintf("[begin %s end || N <- [%s]].", do, c.names(node, others)))
	return err
}

// Blip breaks a RabbitMQ node's link to another node for a while. It calls cut when the link has
// just been broken.
func (c *Cluster) Blip(ctx context.Context, node, other int, lasting time.Duration, cut func()) error {
	b := c.Nodes[node]
	mark := filepath.Join(b.dir, "cut")
	defer os.Remove(mark)
	done := make(chan error, 1)
	go func() {
		_, err := b.Eval(ctx, fmt.Sprintf("N = %s, erlang:set_cookie(N, cut), erlang:disconnect_node(N), file:write_file(%q, <<>>), "+
			"timer:sleep(%d), erlang:set_cookie(N, erlang:get_cookie()), net_kernel:connect_node(N).",
			c.names(node, []int{other}), mark, lasting.Milliseconds()))
		done <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return errors.Join(errors.New("localbroker: the link was not seen broken"), err)
		case <-tick.C:
			if isFile(mark) {
				cut()
				return <-done
			}
		}
	}
}

// names lists the other nodes for Erlang, or all of them if none are given.
func (c *Cluster) names(node int, others []int) string {
	var names []string
	for i := range c.Nodes {
		if i != node && (len(others) == 0 || slices.Contains(others, i)) {
			names = append(names, "'"+memberName(i)+"'")
		}
	}
	return strings.Join(names, ", ")
}

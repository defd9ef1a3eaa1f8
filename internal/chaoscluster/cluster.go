package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// nodes is a cluster that the rows share. It restarts nodes that exit by themselves.
type nodes struct {
	*localbroker.Cluster
	kind  string // one of brokers
	older bool   // for an older Millrace
	log   *slog.Logger

	mu   sync.Mutex
	down map[int]bool // nodes that are meant to be down
	stop context.CancelFunc
	all  sync.WaitGroup
}

// netTickTime is a quarter of RabbitMQ's default, so that the other nodes detect a frozen node
// during a row.
const netTickTime = 15 * time.Second

// startNodes starts a cluster. An older Millrace declares queues that RabbitMQ 4.3 refuses by
// default, so it runs only where Debian's package permits them.
func startNodes(ctx context.Context, o options, older bool, dir string, log *slog.Logger) (*nodes, error) {
	c, err := localbroker.StartCluster(ctx, localbroker.ClusterConfig{
		Dir: filepath.Join(dir, "cluster"), RabbitMQ: o.rabbitMQ(), LavinMQ: o.lavinMQ(),
		NetTickTime: netTickTime, Packaged: older, Log: log,
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	n := &nodes{Cluster: c, kind: o.broker, older: older, log: log, down: map[int]bool{}, stop: stop}
	if o.broker == lavinMQ {
		for i := range c.Nodes {
			n.all.Go(func() { n.supervise(ctx, i) })
		}
	}
	return n, nil
}

func (n *nodes) close() error {
	n.stop()
	err := n.Stop()
	n.all.Wait()
	return err
}

// supervise restarts a node that exited by itself, like LavinMQ's systemd unit.
func (n *nodes) supervise(ctx context.Context, i int) {
	const every, after = 100 * time.Millisecond, 5 * time.Second
	for pause.For(ctx, every) == nil {
		select {
		case <-n.Nodes[i].Exited():
		default:
			continue
		}
		if n.isDown(i) || pause.For(ctx, after) != nil || n.isDown(i) {
			continue
		}
		n.log.Info("a node ended by itself and is started again", "node", i)
		if err := n.Nodes[i].Restart(ctx); err != nil {
			n.log.Info("a node did not start", "node", i, "error", err)
		}
	}
}

func (n *nodes) isDown(i int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down[i]
}

func (n *nodes) setDown(i int, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down[i] = down
}

// kill kills a node, which stays down until back.
func (n *nodes) kill(i int) error {
	n.setDown(i, true)
	return n.Nodes[i].Kill()
}

// halt stops a node in an orderly way. It stays down until back.
func (n *nodes) halt(ctx context.Context, i int) error {
	n.setDown(i, true)
	return n.Nodes[i].Stop(ctx)
}

// back starts a node again, and waits until it can be used.
func (n *nodes) back(ctx context.Context, i int) error {
	defer n.setDown(i, false)
	return n.Nodes[i].Restart(ctx)
}

// apiClient keeps no connection to a node that may be killed.
var apiClient = &http.Client{Timeout: 4 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// api calls the management API of the first node that answers.
func (n *nodes) api(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	for _, b := range n.Nodes {
		var text []byte
		if text, err = ask(ctx, method, b.ManagementURL()+path, body); err == nil && out != nil {
			err = json.Unmarshal(text, out)
		}
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s %s: %w", method, path, err)
}

func ask(ctx context.Context, method, target string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := apiClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return text, err
}

// healthy waits until all nodes run and are connected.
func (n *nodes) healthy(ctx context.Context, limit time.Duration) error {
	return eventually(ctx, limit, "all nodes run", func() bool {
		for _, b := range n.Nodes {
			text, err := ask(ctx, http.MethodGet, b.ManagementURL()+"/api/nodes", nil)
			var all []struct {
				Running    bool
				Partitions []string
			}
			if err != nil || json.Unmarshal(text, &all) != nil {
				return false
			}
			running := 0
			for _, one := range all {
				if one.Running && len(one.Partitions) == 0 {
					running++
				}
			}
			if n.kind != lavinMQ && running != len(n.Nodes) {
				return false
			}
		}
		return true
	})
}

// rejoinWithin is how long a node that was frozen may take to rejoin the others.
const rejoinWithin = 30 * time.Second

// thaw lets a frozen node continue. RabbitMQ 3.10 may leave the node alone forever, while it
// answers its own clients. Then thaw restarts it, as an operator would, and restarted is true.
func (n *nodes) thaw(ctx context.Context, i int) (restarted bool, err error) {
	if err := n.Nodes[i].Thaw(); err != nil || n.kind == lavinMQ {
		return false, err
	}
	if err := n.healthy(ctx, rejoinWithin); !errors.Is(err, errNotWithin) {
		return false, err
	}
	if err := n.kill(i); err != nil {
		return true, err
	}
	if err := n.back(ctx, i); err != nil {
		return true, err
	}
	return true, n.healthy(ctx, startWithin)
}

// home returns the node of a queue, or the node of its leader if it is replicated. It returns -1 if
// that is unknown.
func (n *nodes) home(ctx context.Context, vhost, queue string) int {
	if n.kind == lavinMQ {
		return n.Leading(ctx)
	}
	var q placed
	if n.api(ctx, http.MethodGet, queuePath(vhost, queue), nil, &q) != nil {
		return -1
	}
	for i := range n.Nodes {
		if q.home() == n.name(i) {
			return i
		}
	}
	return -1
}

// placed is where a queue or stream is, according to the management API.
type placed struct{ Node, Leader string }

func (q placed) home() string { return cmp.Or(q.Leader, q.Node) }

func queuePath(vhost, queue string) string {
	return "/api/queues/" + url.PathEscape(vhost) + "/" + url.PathEscape(queue)
}

// needed are the streams without which nothing can be fired.
var needed = []string{"job_journal", "scheduled_jobs", "retries", "dead_jobs", "jobs.gated"}

// streamsLedBy returns the needed streams that a node leads, according to another node.
func (n *nodes) streamsLedBy(ctx context.Context, vhost string, node int) (led []string) {
	other := n.Nodes[(node+1)%len(n.Nodes)]
	for _, stream := range needed {
		var q placed
		text, err := ask(ctx, http.MethodGet, other.ManagementURL()+queuePath(vhost, stream), nil)
		if err == nil && json.Unmarshal(text, &q) == nil && q.home() == n.name(node) {
			led = append(led, stream)
		}
	}
	return led
}

// name returns the name that sidecars use for a node. For LavinMQ that is a host, because it lists
// no followers.
func (n *nodes) name(i int) string {
	if n.kind != lavinMQ {
		return fmt.Sprintf("millrace%d@localhost", i+1)
	}
	u, err := url.Parse(n.Nodes[i].ManagementURL())
	if err != nil {
		return n.Nodes[i].ManagementURL()
	}
	return u.Host
}

var errNotWithin = errors.New("not in time")

// errStandstill is Millrace's fault and not this program's, so the run counts.
var errStandstill = errors.New("nothing is delivered")

// eventually waits until a condition holds.
func eventually(ctx context.Context, limit time.Duration, what string, holds func() bool) error {
	for until := time.Now().Add(limit); !holds(); {
		if time.Now().After(until) {
			return fmt.Errorf("%w: within %v: %s", errNotWithin, limit, what)
		}
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

package localbroker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Etcd is one of three etcds that say which node of a LavinMQ cluster leads.
type Etcd struct {
	program string
	args    []string
	dir     string
	url     string // the address for clients
	process *process
}

// lavinmqClustered is the configuration of a node in a cluster. MQTT cannot be disabled there,
// because a follower exits if it is.
const lavinmqClustered = `enabled = true
advertised_uri = tcp://%[1]s:%[2]d
etcd_endpoints = %[3]s

[mqtt]
bind = %[1]s
port = %[4]d
tls_port = -1
`

// seatLavinMQ gives the nodes addresses with the same ports, and starts an etcd for each. The ports
// must be the same, because a follower forwards connections to the port that it listens on itself.
func (c *Cluster) seatLavinMQ(ctx context.Context, dir string) error {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return fmt.Errorf("localbroker: a LavinMQ cluster needs etcd (`apt-get install etcd-server`): %w", err)
	}
	first := c.Nodes[0].ports
	// These ports of the first node's block are used by no other node.
	client, peer, mqtt := first.block+6, first.block+7, first.block+8
	var endpoints, members []string
	for i := range c.Nodes {
		endpoints = append(endpoints, fmt.Sprintf("%s:%d", host(i), client))
		members = append(members, fmt.Sprintf("etcd%d=http://%s:%d", i+1, host(i), peer))
	}
	for i, b := range c.Nodes {
		if i > 0 {
			b.ports.release()
			b.ports = first
			b.ports.owner = nil
		}
		b.ports.stream = 0
		config := fmt.Sprintf(lavinmqClustered, host(i), first.dist, strings.Join(endpoints, ","), mqtt)
		b.seat = seat{host: host(i), config: config, shared: true}
		name, clientURL, peerURL := fmt.Sprintf("etcd%d", i+1), "http://"+endpoints[i], fmt.Sprintf("http://%s:%d", host(i), peer)
		e := &Etcd{program: program, url: clientURL, dir: filepath.Join(dir, name)}
		e.args = []string{"--name", name, "--data-dir", filepath.Join(e.dir, "data"), "--logger", "zap",
			"--listen-client-urls", clientURL, "--advertise-client-urls", clientURL,
			"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL,
			"--initial-cluster", strings.Join(members, ","), "--initial-cluster-state", "new"}
		if err := e.Start(); err != nil {
			return err
		}
		c.etcds = append(c.etcds, e)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for _, e := range c.etcds {
		err := poll(ctx, e.process.done, func(ctx context.Context) error { return e.ask(ctx, "/v3/maintenance/status", "{}", nil) })
		if err != nil {
			return fmt.Errorf("localbroker: starting etcd in %s: %w", e.dir, err)
		}
	}
	return nil
}

// host returns the address of a LavinMQ node.
func host(i int) string { return fmt.Sprintf("127.0.0.%d", 11+i) }

// Etcds returns the etcds of a LavinMQ cluster. RabbitMQ has none.
func (c *Cluster) Etcds() []*Etcd { return c.etcds }

// Start starts the etcd, also again after Kill.
func (e *Etcd) Start() error {
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return fmt.Errorf("localbroker: making etcd's folder: %w", err)
	}
	out, err := os.Create(filepath.Join(e.dir, "log"))
	if err != nil {
		return fmt.Errorf("localbroker: opening etcd's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(e.program, e.args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = out, out
	e.process, err = startProcess(cmd)
	return err
}

// Kill kills the etcd (SIGKILL). Its data stays.
func (e *Etcd) Kill() error { return e.process.kill() }

// Leading returns the index of the node that leads a LavinMQ cluster, or -1 if none is known.
func (c *Cluster) Leading(ctx context.Context) int {
	name := base64.StdEncoding.EncodeToString([]byte("lavinmq/leader"))
	for _, e := range c.etcds {
		var answer struct {
			KV struct {
				Value []byte `json:"value"`
			} `json:"kv"`
		}
		if e.ask(ctx, "/v3/election/leader", fmt.Sprintf(`{"name":%q}`, name), &answer) != nil {
			continue
		}
		for i := range c.Nodes {
			if strings.Contains(string(answer.KV.Value), "//"+host(i)+":") {
				return i
			}
		}
	}
	return -1
}

func (e *Etcd) ask(ctx context.Context, path, body string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("etcd: " + resp.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

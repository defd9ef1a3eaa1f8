//go:build plugin

package plugintest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// TestCluster runs a sidecar on each of three nodes. They share one user, and one of them leads.
func TestCluster(t *testing.T) {
	dir := shortDir(t)
	c, err := localbroker.StartCluster(t.Context(), localbroker.ClusterConfig{Dir: dir, Extension: extension(t, "millrace.vhosts.1 = /\n")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	var nodes []*node
	for i, b := range c.Nodes {
		nodes = append(nodes, &node{Broker: b, dir: filepath.Join(dir, fmt.Sprintf("node%d", i+1))})
	}
	passwords := map[string]bool{}
	for _, n := range nodes {
		passwords[environment(t, n.await(t, "/"), "MILLRACE_AMQP_PASSWORD")] = true
	}
	require.Len(t, passwords, 1, "all sidecars use one user")
	for _, n := range nodes {
		require.NotContains(t, n.vhost(t, "/").Get("attention").Raw, "replicas", "the streams were created when all nodes were there")
	}
	leader := nodes[0].leader(t)
	for _, n := range nodes {
		require.Equal(t, leader, n.leader(t))
		require.EqualValues(t, 0, n.vhost(t, "/").Get("restarts").Int())
	}

	// A session that one node has begun is valid on the others.
	begun := send(t, nodes[0].request(t, http.MethodPost, "/api/millrace-session", guest, http.NoBody))
	cookie, err := http.ParseSetCookie(begun.header.Get("Set-Cookie"))
	require.NoError(t, err)
	r := nodes[1].request(t, http.MethodGet, root+"/api/whoami", nothing, http.NoBody)
	r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	require.Equal(t, http.StatusOK, send(t, r).status)

	testEnablingUnderLoad(t, nodes)

	// Another sidecar takes over when the leader's node is killed.
	at := awaitLeader(t, nodes)
	password := environment(t, nodes[at].await(t, "/"), "MILLRACE_AMQP_PASSWORD")
	require.NoError(t, nodes[at].Kill())
	awaitLeader(t, slices.Delete(slices.Clone(nodes), at, at+1))
	require.NoError(t, nodes[at].Restart(t.Context()))
	again := nodes[at].await(t, "/")
	require.Equal(t, password, environment(t, again, "MILLRACE_AMQP_PASSWORD"), "the node that comes back asks the others")
}

// testEnablingUnderLoad enables and disables the plugin on all nodes five times, while a client of
// each publishes. The clients must not notice.
func testEnablingUnderLoad(t *testing.T, nodes []*node) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load errgroup.Group
	var published atomic.Int64
	for _, n := range nodes {
		load.Go(func() error { return publish(ctx, n.AMQPURL(), &published) })
	}
	for range 5 {
		for _, n := range nodes {
			require.NoError(t, n.SetPlugins(t.Context()))
		}
		for _, n := range nodes {
			require.Empty(t, n.sidecars(t))
			require.NoError(t, n.SetPlugins(t.Context(), plugin))
		}
		for _, n := range nodes {
			n.await(t, "/")
		}
	}
	stop()
	require.NoError(t, load.Wait())
	require.Greater(t, published.Load(), int64(1000))
	t.Logf("%d messages were published and received", published.Load())
}

// publish publishes and receives messages one by one until ctx ends.
func publish(ctx context.Context, url string, published *atomic.Int64) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	queue, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return err
	}
	messages, err := ch.Consume(queue.Name, "", true, true, false, false, nil)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := ch.Publish("", queue.Name, true, false, amqp.Publishing{Body: []byte("x")}); err != nil {
			return err
		}
		select {
		case _, ok := <-messages:
			if !ok {
				return errors.New("the channel was closed")
			}
			published.Add(1)
		case <-time.After(within):
			return errors.New("a message did not arrive")
		}
	}
	return nil
}

// awaitLeader waits until a sidecar leads, and returns its index.
func awaitLeader(t *testing.T, nodes []*node) (at int) {
	t.Helper()
	nodes[0].eventually(t, func() bool {
		at = slices.IndexFunc(nodes, func(n *node) bool { return n.vhost(t, "/").Get("overview.scheduler.phase").String() == "leading" })
		return at >= 0
	}, "a sidecar leads")
	return at
}

// leader returns the identity of the leader, as this node's sidecar knows it.
func (n *node) leader(t *testing.T) string {
	t.Helper()
	return n.vhost(t, "/").Get("overview.leader.identity").String()
}

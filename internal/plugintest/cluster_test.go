//go:build plugin

package plugintest

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCluster runs a sidecar on each of three nodes. They share one user, and one of them leads.
func TestCluster(t *testing.T) {
	nodes := startCluster(t)
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

	password := environment(t, nodes[0].await(t, "/"), "MILLRACE_AMQP_PASSWORD")
	at := testTakeover(t, nodes)
	require.NoError(t, nodes[at].Restart(t.Context()))
	again := nodes[at].await(t, "/")
	require.Equal(t, password, environment(t, again, "MILLRACE_AMQP_PASSWORD"), "the node that comes back asks the others")
}

// testEnablingUnderLoad enables and disables the plugin on all nodes five times, while an
// application publishes messages and jobs, and receives them. It must not notice. While the plugin
// is not enabled, RabbitMQ refuses messages to a delayed exchange; those that it has confirmed
// arrive.
func testEnablingUnderLoad(t *testing.T, nodes []*node) {
	t.Helper()
	l := startLoad(t, nodes)
	d := &delayedLoad{count: 1_000_000, over: 10 * time.Hour, longest: 5 * time.Second}
	d.start(t, nodes)
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
	l.stop(t, nodes[0])
	d.stop()
	d.publisher.Wait()
	require.Zero(t, d.arrive(t))
}

// testTakeover kills the node of the leader while jobs fall due. Another sidecar takes over, and
// fires them. It returns the index of the killed node.
func testTakeover(t *testing.T, nodes []*node) (killed int) {
	t.Helper()
	killed = awaitLeader(t, nodes)
	for i, n := range nodes {
		if i != killed {
			require.NotEqual(t, "leading", n.vhost(t, "/").Get("overview.scheduler.phase").String(), "one leads")
		}
	}
	left := slices.Delete(slices.Clone(nodes), killed, killed+1)
	deleted := send(t, left[0].request(t, http.MethodDelete, "/api/queues/%2F/"+jobQueue, guest, http.NoBody))
	require.Equal(t, http.StatusNoContent, deleted.status, deleted.body) // it may be on the node that is killed
	jobs := newCounter()
	work(t, left[0], jobs)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, schedule(ctx, left[1], jobs, 40*time.Second))
	require.NoError(t, nodes[killed].Kill())
	began := time.Now()
	awaitLeader(t, left)
	t.Logf("another sidecar led after %s", time.Since(began).Round(time.Millisecond))
	left[0].eventually(t, func() bool { _, missing, _ := jobs.figures(); return missing == 0 }, "all jobs arrive")
	published, _, repeated := jobs.figures()
	t.Logf("%d jobs were scheduled, none is missing, and %d came twice", published, repeated)
	require.Less(t, repeated, 10, "only what was in flight may come twice")
	return killed
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

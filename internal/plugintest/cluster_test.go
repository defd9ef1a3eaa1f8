//go:build plugin

package plugintest

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// TestCluster runs a sidecar on each of three nodes. They share one user, and one of them leads.
func TestCluster(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "plugin")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	c, err := localbroker.StartCluster(t.Context(), localbroker.ClusterConfig{Dir: dir, Extension: extension(t, "millrace.vhosts.1 = /\n")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	var nodes []*node
	for i, b := range c.Nodes {
		nodes = append(nodes, &node{b, filepath.Join(dir, []string{"node1", "node2", "node3"}[i])})
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

	// Another sidecar takes over when the leader's node is killed.
	at := slices.IndexFunc(nodes, func(n *node) bool {
		return strings.HasPrefix(leader, n.get(t, "/api/millrace-status", guest).get("node").String()+"/")
	})
	require.GreaterOrEqual(t, at, 0, leader)
	require.NoError(t, nodes[at].Kill())
	other := nodes[(at+1)%len(nodes)]
	other.eventually(t, func() bool {
		now := other.leader(t)
		return now != "" && now != leader
	}, "another sidecar leads")
	require.NoError(t, nodes[at].Restart(t.Context()))
	again := nodes[at].await(t, "/")
	require.Contains(t, passwords, environment(t, again, "MILLRACE_AMQP_PASSWORD"), "the node that comes back asks the others")
}

// leader returns the identity of the leader, as this node's sidecar knows it.
func (n *node) leader(t *testing.T) string {
	t.Helper()
	return n.vhost(t, "/").Get("overview.leader.identity").String()
}

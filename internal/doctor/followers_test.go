package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/localbroker"
)

func TestFindingsAboutFollowers(t *testing.T) {
	two := []broker.Follower{{ID: "a"}, {ID: "b"}}
	for name, c := range map[string]struct {
		of   followers
		want []string // severity and subject, in order
		says string   // in the first text or remedy
	}{
		"one node":                 {followers{hosts: 1}, nil, ""},
		"fine":                     {followers{hosts: 3, synced: two}, []string{"ok cluster"}, "2 followers in sync"},
		"more than the hosts":      {followers{hosts: 2, synced: two}, []string{"ok cluster"}, "2 followers in sync"},
		"one is not in sync":       {followers{hosts: 3, synced: two[:1]}, []string{"note cluster"}, "3 hosts, and there is only 1 follower in sync"},
		"none is in sync":          {followers{hosts: 3}, []string{"FAIL cluster"}, "etcd_endpoints"},
		"one is away":              {followers{hosts: 3, silent: []string{"c:15672"}, synced: two[:1]}, []string{"FAIL node c:15672", "note cluster"}, "start LavinMQ"},
		"a cluster, and one named": {followers{hosts: 1, synced: two}, []string{"note cluster"}, "amqp://user:password@a,b,c/"},
	} {
		t.Run(name, func(t *testing.T) {
			var found, texts []string
			for _, f := range c.of.findings() {
				found = append(found, string(f.severity)+" "+f.subject)
				texts = append(texts, f.text+"\n"+f.remedy)
				require.Equal(t, f.severity == ok, f.remedy == "", "%s: %s", f.subject, f.text)
			}
			require.Equal(t, c.want, found)
			if c.says != "" {
				require.Contains(t, texts[0], c.says)
			}
		})
	}
}

// lavinNodes is an answer of LavinMQ 2.9.1 to GET /api/nodes, without most of its figures.
const lavinNodes = `[{"uptime":61213,"running":true,"name":"b1","applications":[{"name":"lavinmq","version":"2.9.1"}],"partitions":[],"followers":[%s]}]`

const lavinFollower = `{"remote_address":"127.0.0.12:41236","sent_bytes":81233,"acked_bytes":81233,"lag_in_bytes":0,"compression_ratio":1.0,"uncompressed_bytes":0,"compressed_bytes":0,"id":"3kxq1"}`

func TestFollowersAreRead(t *testing.T) {
	answer := ""
	lavin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, lavinNodes, answer) }))
	defer lavin.Close()
	m, err := broker.NewManagement(lavin.URL, "/", nil)
	require.NoError(t, err)
	defer m.Close()
	e := examination{cfg: Config{Broker: connect.Broker{ManagementURL: lavin.URL}}, mgmt: m}
	require.NoError(t, e.followers(t.Context()))
	require.Empty(t, e.findings, "a single node")
	answer = lavinFollower
	require.NoError(t, e.followers(t.Context()))
	require.Len(t, e.findings, 1)
	require.Contains(t, e.findings[0].text, "1 follower in sync, and the settings name only one host")
}

// A node of a real cluster is killed, and comes back.
func TestFollowersOfLavinMQ(t *testing.T) {
	program := os.Getenv("MILLRACE_TEST_LAVINMQ")
	if program == "" {
		t.Skip("this test needs a LavinMQ, and etcd: set MILLRACE_TEST_LAVINMQ to its program")
	}
	c, err := localbroker.StartCluster(t.Context(), localbroker.ClusterConfig{Dir: t.TempDir(), LavinMQ: program})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	var urls []string
	for _, n := range c.Nodes {
		urls = append(urls, n.ManagementURL())
	}
	found := func() (all string) {
		m, err := broker.OpenManagement(t.Context(), strings.Join(urls, ","), "/", nil)
		if err != nil {
			return err.Error()
		}
		defer m.Close()
		e := examination{cfg: Config{Broker: connect.Broker{ManagementURL: strings.Join(urls, ",")}}, mgmt: m}
		if err := e.followers(t.Context()); err != nil {
			return err.Error()
		}
		for _, f := range e.findings {
			all += string(f.severity) + " " + f.subject + ": " + f.text + "\n"
		}
		return all
	}
	brokertest.Eventually(t, func() bool { return found() == "ok cluster: 2 followers in sync\n" }, "both follow")
	follower := (c.Leading(t.Context()) + 1) % len(c.Nodes)
	require.NoError(t, c.Nodes[follower].Kill())
	brokertest.Eventually(t, func() bool {
		all := found()
		return strings.Contains(all, "FAIL node ") && strings.Contains(all, "note cluster: the settings name 3 hosts, and there is only 1 follower in sync")
	}, "one is away")
	require.NoError(t, c.Nodes[follower].Restart(t.Context()))
	brokertest.Eventually(t, func() bool { return found() == "ok cluster: 2 followers in sync\n" }, "both follow again")
}

//go:build plugin

package plugintest

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testVirtualHosts serves five, of which the settings name four, and one is found by its streams.
func testVirtualHosts(t *testing.T, n *node) {
	missing := n.get(t, "/api/millrace-status", guest).get("missing").Array()
	require.Len(t, missing, 3)
	paths := map[string]string{"tenant-1": "tenant-1", "tenant-2": "tenant-2", "a/b ü": "a~2Fb~20~C3~BC", "found": "found"}
	for name := range paths {
		n.createVHost(t, name)
	}
	n.createVHost(t, "other")
	require.NotContains(t, n.get(t, "/api/millrace-status", guest).body, `"error"`)
	n.put(t, "/api/queues/found/job_journal", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`)
	paths["/"] = "~2F"
	pids := map[string]int{}
	for name, path := range paths {
		pids[name] = n.await(t, name)
		require.Equal(t, path, n.vhost(t, name).Get("path").String())
		require.Equal(t, name, n.get(t, "/api/millrace/"+path+"/api/whoami", guest).get("vhost").String())
		n.eventually(t, func() bool { return n.vhost(t, name).Get("overview.scheduler.phase").String() == "leading" }, name+" has a leader")
	}
	require.Empty(t, n.get(t, "/api/millrace-status", guest).get("missing").Array())
	require.Empty(t, n.vhost(t, "other").Raw, "it has no streams")
	require.Len(t, n.sidecars(t), 5)
	require.Len(t, n.views(t), 5)
	require.Len(t, n.get(t, "/api/millrace-status", "management:secret").get("vhosts").Array(), 1, "a user sees the virtual hosts that the user may use")
	require.Equal(t, http.StatusForbidden, n.get(t, "/api/millrace/found/api/overview", "management:secret").status)

	testDeletedVirtualHost(t, n, pids["tenant-1"])
	testRecreatedVirtualHost(t, n)
	for _, name := range []string{"/", "found", "a/b ü"} {
		require.Equal(t, pids[name], n.await(t, name), "the others are left alone")
	}
}

// testDeletedVirtualHost deletes tenant-1 while its sidecar serves it, and a job falls due.
func testDeletedVirtualHost(t *testing.T, n *node, pid int) {
	t.Helper()
	job := fmt.Sprintf(`{"class":"Mail","at":%d}`, time.Now().Unix()+3)
	a := send(t, n.request(t, http.MethodPost, "/api/millrace/tenant-1/api/jobs", guest, strings.NewReader(job)))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	n.deleteVHost(t, "tenant-1")
	n.eventually(t, func() bool { return !runs(pid) && n.vhost(t, "tenant-1").Raw == "" }, "the sidecar stops")
	require.Equal(t, http.StatusNotFound, n.get(t, "/api/millrace/tenant-1/", guest).status)
	require.Equal(t, "tenant-1", n.get(t, "/api/millrace-status", guest).get("missing.0").String())
	n.eventually(t, func() bool { return len(n.views(t)) == 4 }, "its view is deleted")
	require.Equal(t, http.StatusOK, n.get(t, "/api/overview", guest).status)
	n.createVHost(t, "tenant-1")
	n.await(t, "tenant-1")
	require.EqualValues(t, 0, n.vhost(t, "tenant-1").Get("overview.sets.scheduled-jobs.total").Int())
}

// testRecreatedVirtualHost deletes tenant-2 and creates it again, faster than the plugin looks.
func testRecreatedVirtualHost(t *testing.T, n *node) {
	t.Helper()
	jobs := func(at string) answer {
		return send(t, n.request(t, http.MethodPost, "/api/millrace/tenant-2/api/jobs", guest, strings.NewReader(`{"class":"Mail","at":`+at+`}`)))
	}
	total := func() int64 { return n.vhost(t, "tenant-2").Get("overview.sets.scheduled-jobs.total").Int() }
	require.Equal(t, http.StatusCreated, jobs("4102444800").status)
	n.eventually(t, func() bool { return total() == 1 }, "a job is scheduled")
	n.deleteVHost(t, "tenant-2")
	n.createVHost(t, "tenant-2")
	n.eventually(t, func() bool {
		return n.vhost(t, "tenant-2").Get("overview.scheduler.phase").String() == "leading" && total() == 0
	}, "it has a leader, and no jobs")
	n.eventually(t, func() bool { return jobs("4102444801").status == http.StatusCreated }, "it takes jobs")
	n.eventually(t, func() bool { return total() > 0 }, "it lists the job")
}

func (n *node) createVHost(t *testing.T, name string) {
	t.Helper()
	n.put(t, "/api/vhosts/"+url.PathEscape(name), `{}`)
	n.put(t, "/api/permissions/"+url.PathEscape(name)+"/guest", `{"configure":".*","write":".*","read":".*"}`)
}

func (n *node) deleteVHost(t *testing.T, name string) {
	t.Helper()
	a := send(t, n.request(t, http.MethodDelete, "/api/vhosts/"+url.PathEscape(name), guest, http.NoBody))
	require.Equal(t, http.StatusNoContent, a.status, a.body)
}

// views returns the folders of the sidecars' views.
func (n *node) views(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(n.dir, "data", "*", "millrace", "vhosts", "*"))
	require.NoError(t, err)
	return all
}

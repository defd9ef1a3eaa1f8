//go:build plugin

package plugintest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/connect"
)

const root = "/api/millrace/~2F" // of the sidecar of the virtual host /

// These tests share one node. Their order counts: the last ones stop sidecars and the node.
func TestOneNode(t *testing.T) {
	n := start(t, "millrace.vhosts.1 = /\nmillrace.vhosts.2 = tenant-1\nmillrace.vhosts.3 = a/b ü\nmillrace.vhosts.4 = tenant-2\n")
	n.await(t, "/")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *node)
	}{
		{"users", testUsers},
		{"sessions", testSessions},
		{"answers", testAnswers},
		{"bodies that are too large", testLargeBodies},
		{"server-sent events", testEvents},
		{"WebSockets", testWebSocket},
		{"access that is lost", testLostAccess},
		{"many viewers", testManyViewers},
		{"the tab", testTab},
		{"virtual hosts", testVirtualHosts},
		{"permissions", testPermissions},
		{"secrets", testSecrets},
		{"sidecar that is killed", testKilledSidecar},
		{"changed password", testChangedPassword},
		{"enabling and disabling", testEnabling},
		{"processes that fail", testFailingProcesses},
		{"node that is killed", testKilledNode},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, n) }) {
			break
		}
	}
}

// testUsers signs in as users with each tag, and without access.
func testUsers(t *testing.T, n *node) {
	for _, tag := range []string{"administrator", "monitoring", "management", "policymaker"} {
		n.put(t, "/api/users/"+tag, `{"password":"secret","tags":"`+tag+`"}`)
		n.put(t, "/api/permissions/%2F/"+tag, `{"configure":"^$","write":"^$","read":"^$"}`)
		a := n.get(t, root+"/api/whoami", tag+":secret")
		require.Equal(t, http.StatusOK, a.status, a.body)
		require.Equal(t, tag, a.get("name").String())
		require.Equal(t, tag, a.get("role").String())
		require.Equal(t, "header", a.get("via").String())
		require.Equal(t, tag != "monitoring", a.get("may_act").Bool())
		require.Len(t, n.get(t, "/api/millrace-status", tag+":secret").get("vhosts").Array(), 1)
	}
	require.Empty(t, n.get(t, "/api/millrace-status", "management:secret").get("vhosts.0.tail").Raw, "the log is for those who may see nodes")
	require.NotEmpty(t, n.get(t, "/api/millrace-status", "monitoring:secret").get("vhosts.0.tail").Raw)
	a := send(t, n.request(t, http.MethodDelete, root+"/api/retries/x", "monitoring:secret", http.NoBody))
	require.Equal(t, http.StatusForbidden, a.status, a.body)

	n.put(t, "/api/users/tagless", `{"password":"secret","tags":""}`)
	n.put(t, "/api/permissions/%2F/tagless", `{"configure":"^$","write":"^$","read":"^$"}`)
	n.put(t, "/api/users/elsewhere", `{"password":"secret","tags":"management"}`)
	for user, status := range map[string]int{"tagless:secret": http.StatusUnauthorized, "elsewhere:secret": http.StatusForbidden,
		"guest:wrong": http.StatusUnauthorized, nothing: http.StatusUnauthorized} {
		for _, path := range []string{"/api/overview", "/api/attention", "/api/events", "/metrics"} {
			a := n.get(t, root+path, user)
			require.Equal(t, status, a.status, "%s as %s: %s", path, user, a.body)
			require.NotContains(t, a.body, "scheduled")
		}
	}
	require.Equal(t, http.StatusUnauthorized, n.get(t, "/api/millrace-status", nothing).status)
	require.Equal(t, http.StatusUnauthorized, n.get(t, "/api/millrace-status", "tagless:secret").status)
	require.Empty(t, n.get(t, "/api/millrace-status", "elsewhere:secret").get("vhosts").Array())

	r := n.request(t, http.MethodGet, root+"/api/overview", nothing, http.NoBody)
	r.Header.Set("X-Millrace-User", "1.1.Z3Vlc3Q=.YWRtaW5pc3RyYXRvcg==.00")
	require.Equal(t, http.StatusUnauthorized, send(t, r).status, "a client cannot name a user")
	n.put(t, "/api/users/bad%20name%2E%22%C3%BC", `{"password":"secret","tags":"management"}`)
	n.put(t, "/api/permissions/%2F/bad%20name%2E%22%C3%BC", `{"configure":"^$","write":"^$","read":"^$"}`)
	require.Equal(t, `bad name."ü`, n.get(t, root+"/api/whoami", `bad name."ü:secret`).get("name").String())
}

// testSessions signs a browser in from the tab and from Millrace's own page, and out.
func testSessions(t *testing.T, n *node) {
	require.Equal(t, http.StatusUnauthorized, send(t, n.request(t, http.MethodPost, "/api/millrace-session", nothing, http.NoBody)).status)
	begun := send(t, n.request(t, http.MethodPost, "/api/millrace-session", guest, http.NoBody))
	require.Equal(t, http.StatusNoContent, begun.status)
	cookie, err := http.ParseSetCookie(begun.header.Get("Set-Cookie"))
	require.NoError(t, err)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "/api/millrace/", cookie.Path)
	require.NotContains(t, cookie.Value, "guest")

	with := func(method, path string, body io.Reader) answer {
		r := n.request(t, method, path, nothing, body)
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
		return send(t, r)
	}
	require.Equal(t, "guest", with(http.MethodGet, root+"/api/whoami", http.NoBody).get("name").String())
	require.Equal(t, http.StatusNoContent, with(http.MethodDelete, root+"/api/session", http.NoBody).status)
	require.Equal(t, http.StatusUnauthorized, with(http.MethodGet, root+"/api/whoami", http.NoBody).status)

	a := send(t, n.request(t, http.MethodPost, root+"/api/session", nothing, strings.NewReader(`{"name":"guest","password":"guest"}`)))
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, "guest", a.get("name").String())
	cookie, err = http.ParseSetCookie(a.header.Get("Set-Cookie"))
	require.NoError(t, err)
	require.Equal(t, "guest", with(http.MethodGet, root+"/api/whoami", http.NoBody).get("name").String())
	for body, status := range map[string]int{`{"name":"guest","password":"x"}`: http.StatusUnauthorized, `{}`: http.StatusBadRequest, `x`: http.StatusBadRequest,
		`{"name":"elsewhere","password":"secret"}`: http.StatusForbidden} {
		require.Equal(t, status, send(t, n.request(t, http.MethodPost, root+"/api/session", nothing, strings.NewReader(body))).status, body)
	}
}

// testAnswers compares answers with those of a sidecar that is asked directly.
func testAnswers(t *testing.T, n *node) {
	page := n.get(t, root+"/dashboard", nothing)
	require.Equal(t, http.StatusOK, page.status, "the files of the UI need no user")
	require.Contains(t, page.body, "<!doctype html>")
	require.Contains(t, page.header.Get("Content-Security-Policy"), "script-src")

	r := n.request(t, http.MethodGet, root+"/api-docs/openapi.json", nothing, http.NoBody)
	r.Header.Set("Accept-Encoding", "gzip")
	packed := send(t, r)
	require.Equal(t, "gzip", packed.header.Get("Content-Encoding"))
	unpack, err := gzip.NewReader(strings.NewReader(packed.body))
	require.NoError(t, err)
	text, err := io.ReadAll(unpack)
	require.NoError(t, err)
	require.Contains(t, string(text), root+"/")

	require.Equal(t, http.StatusFound, n.get(t, "/api/millrace/", nothing).status)
	require.Equal(t, http.StatusNotFound, n.get(t, "/api/millrace/none/", guest).status)
	require.Equal(t, http.StatusNotFound, n.get(t, "/api/millrace/%2F/", guest).status, "a virtual host has one path")
	require.Equal(t, http.StatusNotFound, n.get(t, root+"/api/none", guest).status)
	a := send(t, n.request(t, http.MethodPost, root+"/api/jobs", guest, strings.NewReader(`{"class":"Mail","at":4102444800,"args":[12345678901234567890]}`)))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	n.eventually(t, func() bool {
		return strings.Contains(n.get(t, root+"/api/scheduled-jobs", guest).body, "12345678901234567890")
	}, "the job is listed")
	require.EqualValues(t, 1, n.vhost(t, "/").Get("overview.sets.scheduled-jobs.total").Int())
}

func testLargeBodies(t *testing.T, n *node) {
	const limit = 16 << 20
	a := send(t, n.request(t, http.MethodPost, root+"/api/jobs", guest, strings.NewReader(`"`+strings.Repeat("x", limit))))
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status, a.body)
	unsized := io.MultiReader(strings.NewReader(`"`), strings.NewReader(strings.Repeat("x", limit)))
	a = send(t, n.request(t, http.MethodPost, root+"/api/jobs", guest, unsized))
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status, a.body)

	job := `{"class":"Large","at":4102444800,"args":["` + strings.Repeat("x", limit/2) + `"]}`
	a = send(t, n.request(t, http.MethodPost, root+"/api/jobs", guest, strings.NewReader(job)))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	a = send(t, n.request(t, http.MethodPost, root+"/api/jobs", guest, io.MultiReader(strings.NewReader(job))))
	require.Equal(t, http.StatusCreated, a.status, a.body)
}

func testEvents(t *testing.T, n *node) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	r := n.request(t, http.MethodGet, root+"/api/events?topics=scheduled", guest, http.NoBody).WithContext(ctx)
	r.Header.Set("Accept-Encoding", "gzip") // Cowboy must not compress events, and hold them back
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	var read bytes.Buffer
	buffer := make([]byte, 4096)
	for !strings.Contains(read.String(), "event: update") {
		n, err := resp.Body.Read(buffer)
		require.NoError(t, err)
		read.Write(buffer[:n])
	}
}

// testManyViewers keeps 200 viewers for a minute, and then shows something to all of them.
func testManyViewers(t *testing.T, n *node) {
	const viewers = 200
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var happened atomic.Bool
	opened, seen := make(chan error, viewers), make(chan error, viewers)
	r := n.request(t, http.MethodGet, root+"/api/events?topics=scheduled", guest, http.NoBody)
	for range viewers {
		go func() {
			resp, err := http.DefaultClient.Do(r.Clone(ctx))
			if opened <- err; err != nil {
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for lines.Scan() {
				if lines.Text() == "event: update" && happened.Load() {
					seen <- nil
					return
				}
			}
			seen <- fmt.Errorf("the events have ended: %w", lines.Err())
		}()
	}
	for range viewers {
		require.NoError(t, <-opened)
	}
	time.Sleep(time.Minute)
	require.Empty(t, seen, "none has ended")
	happened.Store(true)
	a := send(t, n.request(t, http.MethodPost, root+"/api/jobs", guest, strings.NewReader(`{"class":"Viewed","at":4102444800}`)))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	for range viewers {
		require.NoError(t, <-seen)
	}
}

// testLostAccess deletes a user who watches.
func testLostAccess(t *testing.T, n *node) {
	n.put(t, "/api/users/leaver", `{"password":"secret","tags":"management"}`)
	n.put(t, "/api/permissions/%2F/leaver", `{"configure":"^$","write":"^$","read":"^$"}`)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	r := n.request(t, http.MethodGet, root+"/api/events?topics=scheduled", "leaver:secret", http.NoBody).WithContext(ctx)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	conn, _, err := websocket.Dial(ctx, r.URL.String(), &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": r.Header["Authorization"]}})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	deleted := send(t, n.request(t, http.MethodDelete, "/api/users/leaver", guest, http.NoBody))
	require.Equal(t, http.StatusNoContent, deleted.status)
	_, _ = io.Copy(io.Discard, resp.Body)
	for err == nil {
		_, _, err = conn.Read(ctx)
	}
	require.NoError(t, ctx.Err(), "both have ended")
}

func testWebSocket(t *testing.T, n *node) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	r := n.request(t, http.MethodGet, root+"/api/events?topics=scheduled", guest, http.NoBody)
	origin := "http://" + r.URL.Host
	options := func(origin string) *websocket.DialOptions {
		return &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}, "Authorization": r.Header["Authorization"]}}
	}
	conn, _, err := websocket.Dial(ctx, r.URL.String(), options(origin))
	require.NoError(t, err)
	kind, text, err := conn.Read(ctx)
	require.NoError(t, err)
	require.Equal(t, websocket.MessageText, kind)
	require.Contains(t, string(text), "update")
	require.NoError(t, conn.CloseNow())

	_, resp, err := websocket.Dial(ctx, r.URL.String(), options("https://evil.example"))
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	_, resp, err = websocket.Dial(ctx, r.URL.String(), &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
	require.Error(t, err)
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
}

// testPermissions compares the user with the role that the documentation gives to a sidecar.
func testPermissions(t *testing.T, n *node) {
	a := n.get(t, "/api/permissions/%2F/millrace_plugin", guest)
	require.Equal(t, connect.Sidecar.Configure, a.get("configure").String())
	require.Equal(t, strings.TrimSuffix(connect.Sidecar.Write, ")?$")+"|(?:.*))?$", a.get("write").String(), "it delivers messages to all exchanges")
	require.Equal(t, connect.Sidecar.Read, a.get("read").String())
	tags := n.get(t, "/api/users/millrace_plugin", guest).get("tags").String()
	for _, tag := range connect.SidecarTags {
		require.Contains(t, tags, tag)
	}
	require.NotContains(t, tags, "administrator")
	require.Contains(t, tags, "impersonator")
	require.Eventually(t, func() bool { return n.vhost(t, "/").Get("overview.scheduler.lacks").String() == "" }, within, time.Second)
}

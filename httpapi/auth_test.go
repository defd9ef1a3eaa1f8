package httpapi_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/wire"
)

func TestWhoAmI(t *testing.T) {
	w := newSecured(t)
	a := w.as("both", http.MethodGet, "/api/whoami", "")
	require.JSONEq(t, `{"name":"both","role":"policymaker","auth":"broker","via":"basic","vhost":"/","may_act":true,"may_administer":false,"read_only":false,"hides_args":false,"session_ends":null}`, a.body)
	named := newWorld(t, func(c *httpapi.Config) { c.Environment, c.DeadMax, c.DeadAge = "staging", 1000, time.Hour })
	require.Equal(t, "administrator", gjson.Get(named.get("/api/whoami").body, "role").String(), "no authentication is configured")
	require.Equal(t, "staging", gjson.Get(named.get("/api/whoami").body, "environment").String())
	sets := gjson.Get(named.get("/api/overview").body, "sets")
	require.JSONEq(t, `{"total":0,"bytes":0,"as_of":-1,"max":1000,"max_age_seconds":3600}`, sets.Get("dead-jobs").Raw)
	require.JSONEq(t, `{"total":0,"bytes":0,"as_of":-1}`, sets.Get("retries").Raw)
}

func TestBrokerAnswersAreCached(t *testing.T) {
	w := newSecured(t)
	begun := w.broker.times()
	for range 5 {
		require.Equal(t, http.StatusOK, w.as("monitoring", http.MethodGet, "/api/retries", "").StatusCode)
		require.Equal(t, http.StatusUnauthorized, w.as("stranger", http.MethodGet, "/api/retries", "").StatusCode)
	}
	require.Equal(t, begun+2, w.broker.times())
	cookie := w.session("monitoring")
	w.broker.change(func() { delete(w.broker.users, "monitoring") })
	w.broker.pass(31 * time.Second)
	require.Equal(t, http.StatusUnauthorized, w.as("monitoring", http.MethodGet, "/api/retries", "").StatusCode, "a user who is deleted stops working soon")
	r := request(http.MethodGet, "/api/retries", "")
	r.AddCookie(cookie)
	require.Equal(t, http.StatusUnauthorized, w.send(r).StatusCode, "in a browser too")
}

func TestChangedRoleAppliesSoon(t *testing.T) {
	w := newSecured(t)
	cookie := w.session("management")
	w.broker.change(func() {
		w.broker.users["management"] = auth.User{Name: "management", Tags: []string{"monitoring"}, VHost: true}
	})
	w.broker.pass(31 * time.Second)
	r := request(http.MethodDelete, "/api/retries/a", "")
	r.AddCookie(cookie)
	w.send(r).problem(t, http.StatusForbidden, "access_refused")
}

func TestSignInWhileBrokerDoesNotAnswer(t *testing.T) {
	w := newSecured(t)
	w.as("monitoring", http.MethodGet, "/api/retries", "")
	w.broker.change(func() { w.broker.down = true })
	w.broker.pass(time.Minute)
	require.Equal(t, http.StatusOK, w.as("monitoring", http.MethodGet, "/api/retries", "").StatusCode, "a password that was valid a minute ago")
	w.as("management", http.MethodGet, "/api/retries", "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	w.broker.pass(10 * time.Minute)
	w.as("monitoring", http.MethodGet, "/api/retries", "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	w.broker.change(func() { w.broker.down = false })
	require.Equal(t, http.StatusOK, w.as("monitoring", http.MethodGet, "/api/retries", "").StatusCode)
}

func TestFailedSignInsAreLimited(t *testing.T) {
	w := newSecured(t)
	guess := func(name, password, from string) answer {
		r := request(http.MethodGet, "/api/retries", "")
		r.SetBasicAuth(name, password)
		r.RemoteAddr = from + ":1"
		return w.send(r)
	}
	require.Equal(t, http.StatusOK, guess("management", "right", "192.0.2.1").StatusCode)
	for i := range 10 {
		require.Equal(t, http.StatusUnauthorized, guess("management", fmt.Sprint(i), "192.0.2.1").StatusCode)
	}
	asked := w.broker.times()
	a := guess("management", "another", "192.0.2.1")
	a.problem(t, http.StatusTooManyRequests, "too_many_requests")
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.Equal(t, asked, w.broker.times(), "the broker is not asked")
	require.Equal(t, http.StatusTooManyRequests, w.loginFrom("192.0.2.1", `{"name":"management","password":"next"}`), "nor by the other form of sign-in")
	require.Equal(t, http.StatusOK, guess("management", "right", "192.0.2.1").StatusCode, "a session is not limited")
	require.Equal(t, http.StatusUnauthorized, guess("management", "another", "192.0.2.2").StatusCode, "another address")
	require.Equal(t, http.StatusOK, guess("monitoring", "right", "192.0.2.1").StatusCode, "another name")
	w.broker.pass(time.Duration(seconds) * time.Second)
	require.Equal(t, http.StatusUnauthorized, guess("management", "again", "192.0.2.1").StatusCode)

	for i := range 60 {
		guess(fmt.Sprint("user", i), "x", "2001:db8::"+strconv.FormatInt(int64(i+1), 16))
	}
	require.Equal(t, http.StatusUnauthorized, guess("new", "x", "192.0.2.9").StatusCode)
	r := request(http.MethodGet, "/api/retries", "")
	r.SetBasicAuth("new", "x2")
	r.RemoteAddr = "[2001:db8::ffff]:1"
	w.send(r).problem(t, http.StatusTooManyRequests, "too_many_requests")
	require.NotContains(t, w.log.String(), "another\"", "no password is in the log")
}

// withWrongPassword returns a request with a name and a wrong password.
func withWrongPassword(name, password, from string) *http.Request {
	r := request(http.MethodGet, "/api/retries", "")
	r.SetBasicAuth(name, password)
	r.RemoteAddr = from + ":1"
	return r
}

// Guesses that are sent at the same time are limited too: none of them has failed when the next one
// comes.
func TestConcurrentFailedSignInsAreLimited(t *testing.T) {
	answers := make(chan struct{})
	w := newSecured(t, func(c *httpapi.Config) {
		ask := c.Identify
		c.Identify = func(ctx context.Context, name, password string) (auth.User, error) {
			if password != "right" {
				select {
				case <-answers:
				case <-ctx.Done():
				}
			}
			return ask(ctx, name, password)
		}
	})
	asked := w.broker.times()
	send := func(r *http.Request, statuses chan<- int) {
		recorder := httptest.NewRecorder()
		w.server.Handler().ServeHTTP(recorder, r)
		statuses <- recorder.Code
	}
	guesses, same := make(chan int, 30), make(chan int, 30)
	for i := range 30 {
		go send(withWrongPassword("management", fmt.Sprint(i), "192.0.2.1"), guesses)
		go send(withWrongPassword("monitoring", "one", "192.0.2.3"), same) // one guess together
	}
	for range 20 {
		select {
		case status := <-guesses:
			require.Equal(t, http.StatusTooManyRequests, status)
		case <-time.After(time.Second):
			t.Error("more than 10 guesses wait for the broker")
		}
	}
	require.Equal(t, http.StatusTooManyRequests, w.loginFrom("192.0.2.1", `{"name":"management","password":"another"}`), "nor by the other form of sign-in")
	close(answers)
	for range 10 {
		require.Equal(t, http.StatusUnauthorized, <-guesses)
	}
	for range 30 {
		require.Equal(t, http.StatusUnauthorized, <-same, "one password is one guess, in any number of requests")
	}
	require.Equal(t, asked+11, w.broker.times())
	require.Equal(t, http.StatusTooManyRequests, w.send(withWrongPassword("management", "x", "192.0.2.1")).StatusCode, "all of them failed")
	require.Equal(t, http.StatusOK, w.send(withWrongPassword("monitoring", "right", "192.0.2.3")).StatusCode)
}

// A client that leaves before the broker has answered has guessed too.
func TestAbandonedSignInsAreLimited(t *testing.T) {
	came, answers := make(chan struct{}), make(chan struct{})
	w := newSecured(t, func(c *httpapi.Config) {
		ask := c.Identify
		c.Identify = func(ctx context.Context, name, password string) (auth.User, error) {
			if password != "right" {
				select {
				case came <- struct{}{}:
					<-answers
				case <-ctx.Done():
					return auth.User{}, ctx.Err()
				}
			}
			return ask(ctx, name, password)
		}
	})
	for i := range 10 {
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			w.server.Handler().ServeHTTP(httptest.NewRecorder(), withWrongPassword("management", fmt.Sprint(i), "192.0.2.1").WithContext(ctx))
		}()
		<-came
		leave()
		<-left
		answers <- struct{}{}
	}
	require.Equal(t, http.StatusTooManyRequests, w.send(withWrongPassword("management", "another", "192.0.2.1")).StatusCode)
	require.Eventually(t, func() bool { return strings.Count(w.log.String(), "sign-in failed") == 10 }, 10*time.Second, time.Millisecond,
		"the broker's answers count although no client waits for them")
}

// A sign-in that the broker does not answer is not counted as a guess.
func TestUnansweredSignInsAreNotCounted(t *testing.T) {
	w := newSecured(t)
	w.broker.change(func() { w.broker.down = true })
	for i := range 60 {
		require.Equal(t, http.StatusServiceUnavailable, w.send(withWrongPassword("management", fmt.Sprint(i), "192.0.2.1")).StatusCode)
	}
	w.broker.change(func() { w.broker.down = false })
	require.Equal(t, http.StatusOK, w.send(withWrongPassword("management", "right", "192.0.2.1")).StatusCode)
}

func (w *world) loginFrom(from, body string) int {
	r := request(http.MethodPost, "/api/session", body)
	r.RemoteAddr = from + ":1"
	return w.send(r).StatusCode
}

func TestSession(t *testing.T) {
	w := newSecured(t)
	c := w.session("management")
	require.Equal(t, "millrace_session", c.Name)
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, 8*60*60, c.MaxAge)
	require.Equal(t, "/", c.Path)
	require.False(t, c.Secure)
	get := func(w *world, c *http.Cookie) answer {
		r := request(http.MethodGet, "/api/whoami", "")
		r.AddCookie(&http.Cookie{Name: sessionName, Value: "of another server on this host"})
		r.AddCookie(c)
		return w.send(r)
	}
	a := get(w, c)
	require.Equal(t, "session", gjson.Get(a.body, "via").String(), a.body)
	require.Equal(t, w.broker.clock().Add(8*time.Hour).Unix(), gjson.Get(a.body, "session_ends").Int())

	require.Equal(t, http.StatusOK, get(w.again(func(*httpapi.Config) {}), c).StatusCode, "the key is the same after a restart")
	get(w.again(func(c *httpapi.Config) { c.SessionKey = []byte("another") }), c).problem(t, http.StatusUnauthorized, "not_authorised")
	w.again(func(c *httpapi.Config) { c.SessionKey = []byte("a secret that only this test has") })
	w.broker.pass(8*time.Hour - time.Second)
	require.Equal(t, http.StatusOK, get(w, c).StatusCode)
	w.broker.pass(time.Second)
	require.Contains(t, get(w, c).problem(t, http.StatusUnauthorized, "not_authorised").Reason, "sign in again")

	out := w.do(http.MethodDelete, "/api/session", "")
	require.Equal(t, http.StatusNoContent, out.StatusCode)
	require.Equal(t, -1, out.Cookies()[0].MaxAge)
	require.Empty(t, out.Cookies()[0].Value)
	require.NotContains(t, c.Value, "right")
}

func TestInvalidSignInsAreRefused(t *testing.T) {
	w := newSecured(t)
	for body, status := range map[string]int{
		"": 400, `{}`: 400, `null`: 400, `{"name":"management"}`: 400, `{"name":"management","password":"right","token":"x"}`: 400, `{"user":"x"}`: 400, `{"token":"x"}`: 401,
		`{"name":"management","password":"wrong"}`: 401, `{"name":"untagged","password":"right"}`: 403, `{"name":"elsewhere","password":"right"}`: 403,
	} {
		a := w.do(http.MethodPost, "/api/session", body)
		require.Equal(t, status, a.StatusCode, body)
		require.Empty(t, a.Cookies())
	}
	a := newWorld(t).do(http.MethodPost, "/api/session", `{"name":"x","password":"y"}`)
	require.Equal(t, http.StatusOK, a.StatusCode, "without authentication there is nothing to do")
	require.Empty(t, a.Cookies())
	r := request(http.MethodGet, "/api/retries", "")
	r.Header.Set("Sec-Fetch-Mode", "cors")
	require.Empty(t, w.send(r).Header.Get("WWW-Authenticate"), "the browser shows no prompt of its own")
}

func sum(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("# who may come in\n\ngrafana monitoring " + sum("one") + "\nann administrator " + sum("two") + " # on call\n")
	require.NoError(t, auth.CheckTokens(path))
	b := newDirectory()
	w := newWorld(t, func(c *httpapi.Config) { c.Auth, c.TokensFile, c.Now = auth.ModeToken, path, b.clock })
	ask := func(method string, sign func(*http.Request)) answer {
		r := request(method, "/api/retries/a", "")
		sign(r)
		return w.send(r)
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	require.Equal(t, http.StatusNotFound, ask(http.MethodGet, bearer("one")).StatusCode)
	require.Equal(t, http.StatusForbidden, ask(http.MethodDelete, bearer("one")).StatusCode)
	require.Equal(t, http.StatusNoContent, ask(http.MethodDelete, bearer("two")).StatusCode)
	require.Equal(t, "ann", w.commands[0].Actor)
	require.Equal(t, http.StatusNoContent, ask(http.MethodDelete, func(r *http.Request) { r.SetBasicAuth("ann", "two") }).StatusCode)
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodDelete, func(r *http.Request) { r.SetBasicAuth("bob", "two") }).StatusCode)
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, bearer("three")).StatusCode)
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, bearer(sum("one"))).StatusCode, "a reader of the file has no token")
	w.do(http.MethodPost, "/api/session", `{"name":"ann","password":"two"}`).problem(t, http.StatusUnauthorized, "not_authorised")
	in := w.do(http.MethodPost, "/api/session", `{"token":"two"}`)
	require.Equal(t, http.StatusOK, in.StatusCode)
	cookie := func(r *http.Request) { r.AddCookie(in.Cookies()[0]) }
	require.Equal(t, http.StatusNoContent, ask(http.MethodDelete, cookie).StatusCode)

	write("grafana monitoring " + sum("one") + "\n")
	b.pass(2 * time.Second)
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, bearer("two")).StatusCode, "a removed token is invalid")
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, cookie).StatusCode, "and so are its sessions")
	for _, faulty := range []string{"grafana monitoring\n", "grafana king " + sum("one"), "grafana monitoring one"} {
		write(faulty)
		b.pass(2 * time.Second)
		a := ask(http.MethodGet, bearer("one"))
		a.problem(t, http.StatusServiceUnavailable, "service_unavailable")
		require.NotContains(t, w.log.String(), " one\"", "it may be the token itself")
		require.ErrorContains(t, auth.CheckTokens(path), "line 1")
	}
	require.NoError(t, os.Remove(path))
	b.pass(2 * time.Second)
	require.Equal(t, http.StatusServiceUnavailable, ask(http.MethodGet, bearer("one")).StatusCode)
	write("grafana monitoring " + sum("one") + "\n")
	b.pass(2 * time.Second)
	require.Equal(t, http.StatusNotFound, ask(http.MethodGet, bearer("one")).StatusCode)
	for i := range 60 {
		ask(http.MethodGet, bearer(fmt.Sprint("guess", i)))
	}
	require.Equal(t, http.StatusTooManyRequests, ask(http.MethodGet, bearer("last")).StatusCode)
	require.Equal(t, http.StatusNotFound, ask(http.MethodGet, bearer("one")).StatusCode)
}

// By default the broker's users sign in, unless there are none to ask and only this machine can
// connect.
func TestDefaultAuthentication(t *testing.T) {
	for name, c := range map[string]struct {
		has    auth.HasUsers
		addr   string
		proxy  bool
		status int
	}{
		"there is a management API": {auth.UsersPresent, "127.0.0.1:1", false, http.StatusUnauthorized},
		"there is none":             {auth.UsersAbsent, "127.0.0.1:1", false, http.StatusOK},
		"not found out yet":         {auth.UsersUnsettled, "127.0.0.1:1", false, http.StatusServiceUnavailable},
		"none, and exposed":         {auth.UsersAbsent, "0.0.0.0:1", false, http.StatusUnauthorized},
		"none, behind a proxy":      {auth.UsersAbsent, "127.0.0.1:1", true, http.StatusUnauthorized},
	} {
		w := newWorld(t, func(cfg *httpapi.Config) {
			cfg.HasUsers, cfg.Addr, cfg.BehindProxy = func() auth.HasUsers { return c.has }, c.addr, c.proxy
		})
		require.Equal(t, c.status, w.get("/api/retries").StatusCode, name)
		require.Equal(t, http.StatusOK, w.get("/healthz").StatusCode, name)
	}
}

func TestHiddenArguments(t *testing.T) {
	pattern, err := httpapi.ParseHideArgs(httpapi.DefaultHideArgs)
	require.NoError(t, err)
	w := newSecured(t, func(c *httpapi.Config) { c.HideArgs = pattern })
	const args = `[1,{"user":"ann","apiKey": "k-1","deep":[{"PASSWORD":{"a":["b"]}, "x":1e400}]},"token"]`
	record := func(jid, args string) string {
		return `{"type":"retry","jid":"` + jid + `","retry_at":2000000000,"retry_count":1,"job":{"jid":"` + jid + `","class":"C","queue":"q","args":` + args + `}}`
	}
	w.add(wire.Retries, record("a", args))
	w.add(wire.Retries, record("plain", `["ann"]`))
	w.add(wire.Retries, `{"type":"retry","password":"k-1"}`)
	w.add(wire.Retries, `password: k-1`)
	shown := func(name, target string) string { return w.as(name, http.MethodGet, target, "").body }

	require.Contains(t, shown("management", "/api/retries/a"), args)
	require.True(t, gjson.Get(shown("monitoring", "/api/whoami"), "hides_args").Bool())
	item := shown("monitoring", "/api/retries/a")
	require.Contains(t, item, `[1,{"user":"ann","apiKey": "[hidden]","deep":[{"PASSWORD":"[hidden]", "x":1e400}]},"token"]`)
	require.True(t, gjson.Get(item, "millrace.redacted").Bool())
	require.Equal(t, shown("management", "/api/retries/plain"), shown("monitoring", "/api/retries/plain"))
	for _, target := range []string{"/api/retries", "/api/retries?page=1", "/api/retries?format=ndjson", "/api/retries?format=csv", "/api/retries?jid=a", "/api/rejected", "/api/rejected/retries/2", "/api/rejected/retries/3"} {
		require.NotContains(t, shown("monitoring", target), "k-1", target)
		require.Contains(t, shown("management", target), "k-1", target)
	}
	require.Equal(t, "[]\n", shown("monitoring", "/api/retries?text=k-1"), "a hidden argument is not found")
	require.NotEqual(t, "[]\n", shown("management", "/api/retries?text=k-1"))
	_, err = httpapi.ParseHideArgs("(")
	require.Error(t, err)
}

package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/httpapi/auth"
)

// directory is a management API with users. A user's name is its tag, and its password is "right".
type directory struct {
	mu    sync.Mutex
	users map[string]auth.User
	down  bool
	asked int
	now   time.Time
}

var errDown = errors.New("connection refused")

func newDirectory() *directory {
	b := &directory{users: map[string]auth.User{}, now: time.Unix(1_700_000_000, 0)}
	for _, tag := range []string{"monitoring", "management", "policymaker", "administrator"} {
		b.users[tag] = auth.User{Name: tag, Tags: []string{tag}, VHost: true}
	}
	b.users["both"] = auth.User{Name: "both", Tags: []string{"monitoring", "policymaker", "impersonator"}, VHost: true}
	b.users["untagged"] = auth.User{Name: "untagged", Tags: []string{"impersonator"}, VHost: true}
	b.users["elsewhere"] = auth.User{Name: "elsewhere", Tags: []string{"administrator"}}
	return b
}

func (b *directory) identify(_ context.Context, name, password string) (auth.User, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	u, found := b.users[name]
	switch {
	case b.down:
		return auth.User{}, fmt.Errorf("ask: %w", errDown)
	case !found || password != "right":
		return auth.User{}, auth.ErrWrongPassword
	case name == "tagless":
		return auth.User{}, auth.ErrNoTag
	}
	return u, nil
}

func (b *directory) change(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	do()
}

func (b *directory) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *directory) pass(d time.Duration) { b.change(func() { b.now = b.now.Add(d) }) }

func (b *directory) times() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// newSecured is a world whose server authenticates users at the broker.
func newSecured(t *testing.T, change ...func(*httpapi.Config)) *world {
	t.Helper()
	b := newDirectory()
	w := newWorld(t, append([]func(*httpapi.Config){func(c *httpapi.Config) {
		c.HasUsers = func() auth.HasUsers { return auth.UsersPresent }
		c.Identify, c.Now = b.identify, b.clock
		c.SessionKey = []byte("a secret that only this test has")
	}}, change...)...)
	w.broker = b
	b.pass(-9 * time.Hour)
	w.expired = w.session("administrator")
	b.pass(9 * time.Hour)
	return w
}

// session signs a user in and returns the cookie.
func (w *world) session(name string) *http.Cookie {
	w.t.Helper()
	a := w.do(http.MethodPost, "/api/session", `{"name":"`+name+`","password":"right"}`)
	require.Equal(w.t, http.StatusOK, a.StatusCode, a.body)
	require.Len(w.t, a.Cookies(), 1)
	return a.Cookies()[0]
}

func (w *world) as(name, method, target, body string) answer {
	w.t.Helper()
	r := request(method, target, body)
	r.SetBasicAuth(name, "right")
	return w.send(r)
}

// sessionName is the name of the session's cookie.
const sessionName = "millrace_session"

package brokertest

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// T is what the helpers need from a test. *rapid.T has it too.
type T interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	FailNow()
}

// Vhost is a vhost for one test, with its own user, who has all permissions in it.
type Vhost struct {
	Name  string // of the vhost; needs no escaping in URLs
	Owner *User

	server *server
	own    bool
}

// New creates a vhost on the broker that the tests of this process share. It is deleted at the end
// of the test, with everything in it.
func New(t testing.TB) *Vhost {
	t.Helper()
	return newVhost(t, sharedServer(t), false)
}

// Own creates a vhost on a node for this test alone, which the test may kill and restart. The test
// is skipped if the RabbitMQ package is not installed and no LavinMQ is named.
func Own(t testing.TB) *Vhost {
	t.Helper()
	return own(t, nodeConfig(t.TempDir()), canStartNode())
}

// OwnErlang is Own for a test of effects that only RabbitMQ can be made to show, with Eval or Node.
// It always starts a RabbitMQ.
func OwnErlang(t testing.TB) *Vhost {
	t.Helper()
	return own(t, localbroker.Config{Dir: t.TempDir()}, localbroker.Available())
}

// Extended is OwnErlang with plugins and settings.
func Extended(t testing.TB, e localbroker.Extension) *Vhost {
	t.Helper()
	return own(t, localbroker.Config{Dir: t.TempDir(), Extension: e}, localbroker.Available())
}

func own(t testing.TB, cfg localbroker.Config, missing error) *Vhost {
	t.Helper()
	if missing != nil {
		t.Skipf("this test needs a broker that it may kill: %v", missing)
	}
	s, err := startNode(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	return newVhost(t, s, true)
}

// Erlang is OwnErlang for a test that does not harm the node. It uses the shared node if that is a
// RabbitMQ.
func Erlang(t testing.TB) *Vhost {
	t.Helper()
	if v := New(t); v.CanKill() && v.server.node.HasErlang() {
		return v
	}
	return OwnErlang(t)
}

func newVhost(t testing.TB, s *server, own bool) *Vhost {
	t.Helper()
	v := &Vhost{Name: "test-" + shorten(t.Name()) + "-" + random(), server: s, own: own}
	v.Do(t, http.MethodPut, "/api/vhosts/"+v.Name, nil, nil)
	v.deleteAfter(t, "/api/vhosts/"+v.Name)
	v.Owner = v.AddUser(t, "owner", Permissions{Tags: "policymaker,monitoring"})
	return v
}

// deleteAfter deletes path at the end of the test, unless the whole broker is deleted then.
func (v *Vhost) deleteAfter(t testing.TB, path string) {
	t.Helper()
	if v.own {
		return
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		// The test may have deleted it.
		if err := call(ctx, v.server.management, http.MethodDelete, path, nil, nil); !isMissing(err) {
			require.NoError(t, err)
		}
	})
}

// AMQPURL is for the owner, like ManagementURL and StreamURL.
func (v *Vhost) AMQPURL() string { return v.Owner.AMQPURL() }

// ManagementURL returns the root of the management API.
func (v *Vhost) ManagementURL() string { return v.Owner.ManagementURL() }

// StreamURL returns the URL of the native stream protocol. It is empty if the broker does not speak
// it.
func (v *Vhost) StreamURL() string { return v.Owner.StreamURL() }

// User is a user of the broker with permissions in one vhost.
type User struct {
	Name     string
	Password string

	vhost *Vhost
}

// Permissions are the permissions of a user. An empty pattern allows everything.
type Permissions struct {
	Configure, Write, Read string // regular expressions of names
	// Tags are the tags of the management API, such as "monitoring". Empty means no access to it.
	Tags string
}

// AddUser creates a user with a name that begins with "test-" and name. It is deleted at the end of
// the test.
func (v *Vhost) AddUser(t testing.TB, name string, p Permissions) *User {
	t.Helper()
	u := &User{Name: "test-" + name + "-" + random(), Password: random(), vhost: v}
	v.Do(t, http.MethodPut, "/api/users/"+u.Name, map[string]string{"password": u.Password, "tags": p.Tags}, nil)
	v.deleteAfter(t, "/api/users/"+u.Name)
	v.Do(t, http.MethodPut, "/api/permissions/"+v.Name+"/"+u.Name,
		map[string]string{"configure": orAll(p.Configure), "write": orAll(p.Write), "read": orAll(p.Read)}, nil)
	return u
}

func orAll(pattern string) string {
	if pattern == "" {
		return ".*"
	}
	return pattern
}

// AMQPURL returns the URL with which this user connects to the vhost.
func (u *User) AMQPURL() string { return u.in(u.vhost.server.amqp) }

// ManagementURL returns the root of the management API, for this user.
func (u *User) ManagementURL() string {
	root := u.vhost.server.management
	root.User = url.UserPassword(u.Name, u.Password)
	return root.String()
}

// StreamURL returns the URL with which this user connects over the native stream protocol. It is
// empty if the broker does not speak it.
func (u *User) StreamURL() string {
	if u.vhost.server.stream.Host == "" {
		return ""
	}
	return u.in(u.vhost.server.stream)
}

func (u *User) in(base url.URL) string {
	base.User = url.UserPassword(u.Name, u.Password)
	base.Path = "/" + u.vhost.Name
	return base.String()
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// shorten makes a test's name short, and safe in URLs.
func shorten(name string) string {
	name = strings.Trim(unsafe.ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), 60)]
}

func random() string { return strings.ToLower(rand.Text()[:10]) }

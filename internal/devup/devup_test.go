package devup

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/localbroker"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func TestFreshDeletesBrokerAndView(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir, unlock, err := openDir(false)
	require.NoError(t, err)
	for _, name := range []string{"broker", "view", "mine"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name, "x"), 0o700))
	}
	unlock()
	dir, unlock, err = openDir(false)
	require.NoError(t, err)
	unlock()
	require.DirExists(t, filepath.Join(dir, "broker"))

	_, unlock, err = openDir(true)
	require.NoError(t, err)
	unlock()
	require.NoDirExists(t, filepath.Join(dir, "broker"))
	require.NoDirExists(t, filepath.Join(dir, "view"))
	require.DirExists(t, filepath.Join(dir, "mine"), "other files in the directory are kept")
}

func TestListensOnFreePorts(t *testing.T) {
	listen := func(ctx context.Context, addr string) (net.Listener, error) {
		return auth.Listen(ctx, addr, auth.Exposure{})
	}
	taken, err := listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	c := Config{HTTPAddr: taken.Addr().String(), Listen: listen}
	next, err := c.listen(t.Context())
	require.NoError(t, err)
	defer next.Close()
	require.NotEqual(t, taken.Addr().String(), next.Addr().String())

	c.HTTPAddr = "0.0.0.0:0"
	_, err = c.listen(t.Context())
	require.ErrorContains(t, err, "loopback")
}

// Only on other ports than the usual ones, the addresses are set, once. Every line fits a terminal.
func TestSuggestions(t *testing.T) {
	usual := suggestions("bin/millrace", "amqp://guest:guest@127.0.0.1:5672/", "127.0.0.1:15680")
	other := suggestions("bin/millrace", "amqp://guest:guest@127.0.0.1:45673/", "127.0.0.1:15681")
	require.Equal(t, append([]string{
		"export MILLRACE_AMQP_URL=amqp://guest:guest@127.0.0.1:45673/", "export MILLRACE_HTTP_ADDR=127.0.0.1:15681",
	}, usual...), other)
	for _, line := range other {
		require.LessOrEqual(t, len("  "+line), 80, line)
	}
	require.Contains(t, usual[0], "bin/millrace enqueue ")
	require.Equal(t, "bin/millrace job JID", usual[1], "it shows what became of the first one")
	for _, of := range []string{"limits parts demo.one-import", "governed", "unique", "periodic"} {
		require.Contains(t, strings.Join(usual, "\n"), "bin/millrace "+of+"  # ", "it says where to look")
	}
}

// On a terminal, the headline and the addresses have colours. They are the only difference.
func TestColoursOfWelcome(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	_, terminal := clitest.OpenTerminal(t, 80, 24)
	to := func(w io.Writer) string {
		return welcome(output.NewLive(w), "127.0.0.1:15680", "amqp://guest:guest@127.0.0.1:5672/", "http://guest:guest@127.0.0.1:15672", "/var/up")
	}
	plain, coloured := to(io.Discard), to(terminal)
	for _, want := range []string{
		"\x1b[32mMillrace is up.\x1b[0m", "  \x1b[36mhttp://127.0.0.1:15680/\x1b[0m\n", "\x1b[36mhttp://127.0.0.1:15680/api/overview\x1b[0m\n",
		"\x1b[36mamqp://guest:guest@127.0.0.1:5672/\x1b[0m\n", "\x1b[36mhttp://127.0.0.1:15672\x1b[0m\n",
	} {
		require.Contains(t, coloured, want)
	}
	require.Equal(t, plain, regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(coloured, ""))
	require.NotContains(t, plain, "\x1b", "a pipe")
	t.Setenv("NO_COLOR", "1")
	require.Equal(t, plain, to(terminal))
}

// Two brokers that start at the same time do not choose the same ports.
func TestTwoBrokersStartTogether(t *testing.T) {
	if err := localbroker.Available(); err != nil {
		t.Skip(err)
	}
	var brokers [2]*localbroker.Broker
	var g errgroup.Group
	for i := range brokers {
		g.Go(func() (err error) {
			brokers[i], err = startBroker(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler))
			return err
		})
	}
	err := g.Wait()
	for _, b := range brokers {
		if b != nil {
			t.Cleanup(func() { require.NoError(t, b.Stop(context.WithoutCancel(t.Context()))) })
		}
	}
	require.NoError(t, err)
	require.NotEqual(t, brokers[0].AMQPURL(), brokers[1].AMQPURL())
	require.NotEqual(t, brokers[0].ManagementURL(), brokers[1].ManagementURL())
	require.NotEqual(t, brokers[0].StreamURL(), brokers[1].StreamURL())
}

// The sidecar of `millrace up` may do what a sidecar in production may. In addition, it delivers
// messages to any exchange.
func TestUserHasPermissionsOfSidecar(t *testing.T) {
	if err := localbroker.Available(); err != nil {
		t.Skip(err)
	}
	b, err := localbroker.Start(t.Context(), localbroker.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop(context.WithoutCancel(t.Context()))) })
	before, err := makeUser(t.Context(), b.ManagementURL())
	require.NoError(t, err)
	user, err := makeUser(t.Context(), b.ManagementURL())
	require.NoError(t, err)
	require.NotEqual(t, before.String(), user.String())
	_, err = amqp.Dial(withUser(before, b.AMQPURL()))
	require.Error(t, err, "the password of an earlier start")
	conn, err := amqp.Dial(withUser(user, b.AMQPURL()))
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	admin, err := broker.NewManagement(b.ManagementURL(), "/", nil)
	require.NoError(t, err)
	permissions, err := admin.Permissions(t.Context())
	require.NoError(t, err)
	require.Contains(t, permissions, broker.Permission{User: "millrace", Configure: connect.Sidecar.Configure, Write: ".*", Read: connect.Sidecar.Read})
	_, err = makeUser(t.Context(), withUser(user, b.ManagementURL()))
	require.ErrorContains(t, err, "make the broker user millrace: the management API answers 401", "it may not create users")
}

// A run starts everything, with a sidecar that only has an API, prints the welcome, and ends in
// order.
func TestRunsUntilInterrupted(t *testing.T) {
	if err := localbroker.Available(); err != nil {
		t.Skip(err)
	}
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out clitest.Buffer
	opened := fakeOpener(t, `echo "$1" > "$opened"`)
	var given Sidecar
	cfg := Config{
		HTTPAddr: "127.0.0.1:15680", Open: true, Rate: 20, Live: output.NewLive(&out), Log: slog.New(slog.DiscardHandler),
		Listen: func(ctx context.Context, addr string) (net.Listener, error) {
			return auth.Listen(ctx, addr, auth.Exposure{})
		},
		Serve: func(ctx context.Context, s Sidecar, l net.Listener) error {
			given = s
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"sets":{"retries":{"total":7}}}`)
			})}
			defer context.AfterFunc(ctx, func() { _ = server.Close() })()
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	brokertest.EventuallyWithin(t, 2*time.Minute, func() bool { return strings.Contains(out.String(), "retries 7") || len(ended) > 0 }, "it counts")
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(opened(), "\n") }, "it opens the web UI")
	require.Contains(t, out.String(), "\n  "+opened(), "the address")
	interrupt()
	require.NoError(t, <-ended)
	dir := filepath.Join(state, "millrace", "up")
	require.Equal(t, dir, given.StateDir)
	require.Regexp(t, `^amqp://millrace:\w+@127\.0\.0\.1:\d+/$`, given.AMQPURL)
	require.Regexp(t, `(?s)^Starting a private RabbitMQ with its data in `+dir+` …\n\nMillrace is up\. .*Stopping\. The data stay for the next start\.\n$`, out.String())

	cfg.Rate = 0
	require.ErrorContains(t, Run(t.Context(), cfg), "invalid --rate 0")
}

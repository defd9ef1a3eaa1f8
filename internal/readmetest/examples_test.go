package readmetest

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// The web shop in each client's examples runs as its first lines say, with a sidecar. The payment
// of an order fails and is retried. The e-mail that is due a day later is sent, because the test
// triggers it.
func TestShop(t *testing.T) {
	for language, open := range map[string]func(*testing.T, *shop){
		"python": pythonShop, "ruby": rubyShop, "javascript": javascriptShop, "java": javaShop, "go": goShop,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := &shop{sidecar: serve(t), addr: freeAddr(t)}
			open(t, s)
			s.sells(t)
		})
	}
}

// The README's class for Spring is the one that the Java client's tests run.
func TestSpringExample(t *testing.T) {
	shown := readmeBlocks(t, "clients/java/README.md")["spring/example/Mails.java"]
	require.Equal(t, document(t, "clients/java/src/test/java/example/Mails.java"), shown)
}

// shop is a web shop that uses a sidecar.
type shop struct {
	*sidecar
	addr   string
	worker *exec.Cmd
	out    *output // of the worker
}

// command returns a program in the directory of a client's examples.
func (s *shop) command(t *testing.T, language, name string, args ...string) *exec.Cmd {
	cmd := s.sidecar.command(t, name, args...)
	cmd.Dir = filepath.Join(root, "clients", language, "examples")
	_, port, _ := strings.Cut(s.addr, ":")
	cmd.Env = append(cmd.Env, "SHOP_PORT="+port, "SHOP_DATABASE="+filepath.Join(s.bin, "shop.db"))
	return cmd
}

// run runs the shop, or its worker.
func (s *shop) run(t *testing.T, cmd *exec.Cmd) {
	s.worker, s.out = cmd, start(t, cmd)
}

func pythonShop(t *testing.T, s *shop) {
	python := func(args ...string) *exec.Cmd {
		// This is Debian's own Python: pika is one of its packages.
		cmd := s.command(t, "python", "/usr/bin/python3", args...)
		cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join(root, "clients", "python", "src"), "PYTHONDONTWRITEBYTECODE=1")
		return cmd
	}
	start(t, python("shop.py"))
	s.run(t, python("-m", "millrace_jobs", "worker", "shop:worker"))
}

func rubyShop(t *testing.T, s *shop) {
	s.run(t, s.command(t, "ruby", "ruby", "-I../lib", "shop.rb"))
}

func javascriptShop(t *testing.T, s *shop) {
	prepare(t, "clients/javascript/install")
	s.run(t, s.command(t, "javascript", "node", "shop.mjs"))
}

func javaShop(t *testing.T, s *shop) {
	client := filepath.Join(root, "clients", "java")
	prepare(t, "clients/java/conformance/build")
	s.run(t, s.command(t, "java", "java", "-cp", filepath.Join(client, "target", "classes")+":"+filepath.Join(client, ".build", "lib", "*"), "Shop.java"))
}

func goShop(t *testing.T, s *shop) {
	path, err := build("./clients/go/examples/shop")
	require.NoError(t, err)
	s.run(t, s.command(t, "go", path))
}

func (s *shop) sells(t *testing.T) {
	var taken string
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		status, body := s.ask(t, http.MethodPost, "/orders", `{"email": "ann@example.com"}`)
		taken = body
		return status == http.StatusAccepted
	}, "the shop takes an order")
	order := "/orders/" + gjson.Get(taken, "order").String()
	became := func(member string) bool {
		_, body := s.ask(t, http.MethodGet, order, "")
		return gjson.Get(body, member).Bool()
	}
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return became("paid") }, "the order is paid")
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		failed, err := s.get("/api/jobs?class=Charge&failed=true&queue=payments")
		return err == nil && strings.HasSuffix(strings.ToLower(gjson.Get(failed, "items.0.error_class").Str), "bankbusy")
	}, "the first attempt failed")

	jid := s.entry(t, "scheduled-jobs", "AskForReview")
	body, err := s.get("/api/scheduled-jobs/" + jid)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), time.UnixMilli(int64(gjson.Get(body, "scheduled_at").Float()*1000)), 5*time.Minute)
	require.False(t, became("mailed"))
	_, err = s.request(http.MethodPost, "/api/scheduled-jobs/"+jid+"/trigger")
	require.NoError(t, err)
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return became("mailed") }, "the e-mail is sent")
	said := func() bool { return strings.Contains(s.out.String(), "e-mail to ann@example.com about order") }
	brokertest.Eventually(t, said, "it is the customer's")

	for _, wrong := range []string{"[]", "{"} {
		status, body := s.ask(t, http.MethodPost, "/orders", wrong)
		require.Equal(t, http.StatusBadRequest, status, "%s: %s", wrong, body)
	}
	status, _ := s.ask(t, http.MethodGet, "/orders/99", "")
	require.Equal(t, http.StatusNotFound, status)
	require.NoError(t, s.worker.Process.Signal(syscall.SIGTERM))
	brokertest.Eventually(t, func() bool { return s.worker.Process.Signal(syscall.Signal(0)) != nil }, "the worker ends")
	require.NotContains(t, s.out.String(), "Exception in thread")
}

// ask sends a request to the shop. Status 0 means that there was no answer.
func (s *shop) ask(t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

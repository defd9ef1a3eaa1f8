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

// TestShop runs the web shop of clients/python/examples as its first lines say, beside a sidecar: an order's payment fails and is
// retried, and the e-mail that is due a day later is sent, since the test does not wait for it.
func TestShop(t *testing.T) {
	s := serve(t)
	addr := freeAddr(t)
	python := func(args ...string) *exec.Cmd {
		cmd := s.command(t, "/usr/bin/python3", args...) // Debian's own: pika is one of its packages
		cmd.Dir = filepath.Join(root, "clients", "python", "examples")
		_, port, _ := strings.Cut(addr, ":")
		cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join(root, "clients", "python", "src"), "PYTHONDONTWRITEBYTECODE=1",
			"SHOP_DATABASE="+filepath.Join(s.bin, "shop.db"), "SHOP_PORT="+port)
		return cmd
	}
	start(t, python("shop.py"))
	worker := python("-m", "millrace_jobs", "worker", "shop:worker")
	out := start(t, worker)

	var answer string
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		status, body := shopAnswers(t, http.MethodPost, "http://"+addr+"/orders", `{"email": "ann@example.com"}`)
		answer = body
		return status == http.StatusAccepted
	}, "the shop takes an order")
	order := "http://" + addr + "/orders/" + gjson.Get(answer, "order").String()
	became := func(member string) bool {
		_, body := shopAnswers(t, http.MethodGet, order, "")
		return gjson.Get(body, member).Bool()
	}
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return became("paid") }, "the order is paid")
	require.Contains(t, out.String(), "job failed  class=Charge")
	require.Contains(t, out.String(), "error_class=shop.BankBusy")

	jid := s.entry(t, "scheduled-jobs", "AskForReview")
	body, err := s.get("/api/scheduled-jobs/" + jid)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), time.UnixMilli(int64(gjson.Get(body, "scheduled_at").Float()*1000)), 5*time.Minute)
	require.False(t, became("mailed"))
	_, err = s.request(http.MethodPost, "/api/scheduled-jobs/"+jid+"/trigger")
	require.NoError(t, err)
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return became("mailed") }, "the e-mail is sent")
	said := func() bool { return strings.Contains(out.String(), "e-mail to ann@example.com about order") }
	brokertest.Eventually(t, said, "it is the customer's")

	status, body := shopAnswers(t, http.MethodPost, "http://"+addr+"/orders", `[]`)
	require.Equal(t, http.StatusBadRequest, status, "%s", body)
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	brokertest.Eventually(t, func() bool { return worker.Process.Signal(syscall.Signal(0)) != nil }, "the worker ends")
	require.NotContains(t, out.String(), "Exception in thread")
}

// shopAnswers sends the shop a request. A status of 0: nothing answers.
func shopAnswers(t *testing.T, method, url, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
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

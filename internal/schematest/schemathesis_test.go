//go:build schemathesis

package schematest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// TestSchemathesis asks as an administrator, and as somebody who may only look.
func TestSchemathesis(t *testing.T) {
	examples := os.Getenv("EXAMPLES")
	if examples == "" {
		examples = "200"
	}
	for _, role := range []string{"administrator", "monitoring"} {
		t.Run(role, func(t *testing.T) {
			v := brokertest.New(t)
			url := serve(t, v)
			user := v.AddUser(t, role, brokertest.Permissions{Tags: role})
			fill(t, v, url)
			st := exec.CommandContext(t.Context(), filepath.Join(root(t), ".cache", "schemathesis", "bin", "schemathesis"), "run", url+"/api/openapi.yaml",
				"--checks", "all", "-n", examples, "--auth", user.Name+":"+user.Password, "--continue-on-failure", "--request-timeout", "30")
			st.Dir = filepath.Join(root(t), "internal", "schematest")
			st.Env = append(os.Environ(), "SCHEMATHESIS_HOOKS=hooks", "PYTHONPATH="+st.Dir, "PYTHONDONTWRITEBYTECODE=1")
			st.Stdout, st.Stderr = os.Stdout, os.Stdout
			require.NoError(t, st.Run())
		})
	}
}

// serve runs a sidecar until the test ends, and waits until it leads.
func serve(t *testing.T, v *brokertest.Vhost) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	binary := filepath.Join(t.TempDir(), "millrace")
	build := exec.Command("go", "build", "-o", binary, "./cmd/millrace")
	build.Dir = root(t)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--http-addr", addr, "--amqp-url", v.AMQPURL(), "--management-url", v.ManagementURL())
	log, err := os.Create(filepath.Join(os.TempDir(), "millrace-schemathesis.log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait()
		require.NoError(t, log.Close())
	})
	url = "http://" + addr
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return strings.Contains(get(t, v, url+"/api/overview"), `"phase":"leading"`) }, "it leads")
	return url
}

func get(t *testing.T, v *brokertest.Vhost, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	req.SetBasicAuth(v.Owner.Name, v.Owner.Password)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// fill publishes jobs of every kind, and what is none.
func fill(t *testing.T, v *brokertest.Vhost, url string) {
	t.Helper()
	publish := func(stream, body string) { v.Publish(t, "", stream, amqp.Publishing{Body: []byte(body)}) }
	for i, jid := range []string{"a", "b", "same", "same", "a/b", "é", "0", "1", "%2F", strings.Repeat("x", 300)} {
		args := `[1,{"password":"hidden","é":[1e3,null]}]`
		if i == 1 {
			args = `["` + strings.Repeat("x", 70<<10) + `"]`
		}
		name, err := json.Marshal(jid)
		require.NoError(t, err)
		job := fmt.Sprintf(`{"jid":%s,"class":"Class%d","queue":"q%d","args":%s,"tags":["t"],"extra":{"n":%d}}`, name, i%3, i%2, args, i)
		publish(wire.ScheduledJobs, fmt.Sprintf(`{"type":"scheduled_job","jid":%s,"scheduled_at":%d,"job":%s}`, name, 4_000_000_000+i, job))
		publish(wire.Retries, fmt.Sprintf(`{"type":"retry","jid":%s,"retry_at":%d,"retry_count":%d,"error_class":"E%d","error_message":"it broke %d times","job":%s}`, name, 4_000_000_000+i, i, i%2, i, job))
		publish(wire.DeadJobs, fmt.Sprintf(`{"type":"dead_job","jid":%s,"died_at":%d,"error_class":"E","error_message":"m","job":%s}`, name, 1_000_000_000+i, job))
	}
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Heartbeats, wire.JobMetrics} {
		publish(stream, "garbage")
		publish(stream, "\xff\xfe")
	}
	beat(t, v)
	brokertest.Eventually(t, func() bool { return strings.Contains(get(t, v, url+"/api/overview"), `"dead-jobs":{"total":10`) }, "all are read")
}

// beat has a worker process that lives as long as the test.
func beat(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	ch, err := v.Owner.Dial(t).Channel()
	require.NoError(t, err)
	tick := time.NewTicker(5 * time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			_ = ch.Publish("", wire.Heartbeats, false, false, amqp.Publishing{Body: []byte(heartbeat())}) // the next will do
			select {
			case <-tick.C:
			case <-t.Context().Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		tick.Stop()
		<-done
	})
}

func heartbeat() string {
	now := float64(time.Now().UnixMilli()) / 1000
	return fmt.Sprintf(`{"type":"heartbeat","identity":"host:1:w","hostname":"host","pid":1,"tag":"w","queues":["q0"],"concurrency":5,"busy":1,"beat":%f,"version":"1","state":"running","work":[{"jid":"a","class":"C","queue":"q0","started_at":%f}]}`, now, now)
}

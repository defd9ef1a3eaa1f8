package readmetest

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// stopTimeout is how long a stopping worker waits for its jobs by default.
const stopTimeout = 25 * time.Second

// The worker of the page runs with a sidecar. While its job runs, the user that the page creates
// for KEDA can count the job. After SIGTERM the job finishes, and the worker ends before its
// supervisor would kill it.
func TestDeployedWorker(t *testing.T) {
	blocks := readmeBlocks(t, "docs/deploying-workers.md")
	s := serve(t)
	path := filepath.Join(s.bin, "worker.py")
	// The figures of the management API are up to 5 s old.
	text := strings.Replace(blocks["worker.py"], "time.sleep(2)", "time.sleep(8)", 1)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	worker := s.command(t, "/usr/bin/python3", path) // Debian's own: pika is one of its packages
	worker.Env = append(worker.Env, "PYTHONPATH="+filepath.Join(root, "clients", "python", "src"))
	out := start(t, worker)
	enqueued, err := s.command(t, program(t), "enqueue", "--queue", "reports", "Report", `["of May"]`).CombinedOutput()
	require.NoError(t, err, "%s", enqueued)

	require.Contains(t, blocks["keda.sh"], "set_user_tags keda management\n")
	require.Contains(t, blocks["keda.sh"], "--vhost jobs keda '^$' '^$' '^$'\n")
	keda := s.vhost.AddUser(t, "keda", brokertest.Permissions{Tags: "management", Configure: "^$", Write: "^$", Read: "^$"})
	queue := keda.ManagementURL() + "/api/queues/" + s.vhost.Name + "/" + scaler(t, blocks)["queueName"]
	brokertest.Eventually(t, func() bool {
		waiting, all := countIn(t, queue)
		return waiting == 0 && all == 1
	}, "the management API counts the job that runs")

	stopped := time.Now()
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	brokertest.Eventually(t, func() bool { return worker.Process.Signal(syscall.Signal(0)) != nil }, "the worker ends")
	require.Less(t, time.Since(stopped), stopTimeout)
	require.Contains(t, out.String(), "report of May is done\n")
	require.NotContains(t, out.String(), "Traceback")
}

// countIn asks the management API, like KEDA. A queue that does not exist yet has no jobs.
func countIn(t *testing.T, queue string) (waiting, all int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, queue, http.NoBody)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return 0, 0
	}
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var count struct {
		Ready    int `json:"messages_ready"`
		Messages int `json:"messages"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&count))
	return count.Ready, count.Messages
}

// scaler returns the metadata of KEDA's trigger.
func scaler(t *testing.T, blocks map[string]string) map[string]string {
	t.Helper()
	_, text, found := strings.Cut(blocks["scaler.yaml"], "\n---\n")
	require.True(t, found)
	var object struct {
		Spec struct {
			ScaleTargetRef struct{ Name string } `yaml:"scaleTargetRef"`
			Triggers       []struct{ Metadata map[string]string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object))
	require.Equal(t, deployment(t, blocks).Metadata.Name, object.Spec.ScaleTargetRef.Name)
	return object.Spec.Triggers[0].Metadata
}

// manifest has the parts of a Deployment that the tests check.
type manifest struct {
	Metadata struct{ Name string }
	Spec     struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Command []string
					Env     []struct{ Name string }
				}
			}
		}
	}
}

func deployment(t *testing.T, blocks map[string]string) (m manifest) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(blocks["worker.yaml"]), &m))
	return m
}

// The settings of the page for supervisors fit its worker.
func TestDeploymentFiles(t *testing.T) {
	blocks := readmeBlocks(t, "docs/deploying-workers.md")
	require.Len(t, blocks, 7)
	require.Equal(t, "worker: python worker.py\n", blocks["Procfile"])
	queues := regexp.MustCompile(`queues=\["(\w+)"\]`).FindStringSubmatch(blocks["worker.py"])
	require.Equal(t, "queue."+queues[1], scaler(t, blocks)["queueName"])
	variable := regexp.MustCompile(`os\.environ\["(\w+)"\]`).FindStringSubmatch(blocks["worker.py"])[1]
	require.Contains(t, blocks["worker.env"], "\n"+variable+"=amqp://")

	kubernetes := deployment(t, blocks).Spec
	require.Equal(t, kubernetes.Selector.MatchLabels, kubernetes.Template.Metadata.Labels)
	pod := kubernetes.Template.Spec
	require.Equal(t, stopTimeout+5*time.Second, time.Duration(pod.Grace)*time.Second)
	require.Equal(t, []string{"python", "worker.py"}, pod.Containers[0].Command)
	require.Equal(t, variable, pod.Containers[0].Env[0].Name)

	unit := blocks["app-worker@.service"]
	seconds := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(unit)[1]
	require.Equal(t, stopTimeout+5*time.Second, time.Duration(must(strconv.Atoi(seconds)))*time.Second)
	verifyUnit(t, unit)
}

// verifyUnit lets systemd, if it is installed, find unknown keys and values. systemd warns about
// them, and exits with 0.
func verifyUnit(t *testing.T, unit string) {
	t.Helper()
	systemd, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Logf("the unit is not verified: %v", err)
		return
	}
	unit = regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllString(unit, "ExecStart=/bin/sh")
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "app-worker@.service"), []byte(unit), 0o600))
	found, err := exec.CommandContext(t.Context(), systemd, "verify", "--man=no", filepath.Join(folder, "app-worker@1.service")).CombinedOutput()
	require.NoError(t, err, "%s", found)
	require.Empty(t, string(found))
}

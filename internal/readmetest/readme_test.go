package readmetest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// languages say how to run the programs of the page, by their file extensions.
var languages = map[string]func(t *testing.T, file string) (name string, args, env []string){
	".py": func(_ *testing.T, file string) (string, []string, []string) {
		// This is Debian's own Python: pika is one of its packages.
		return "/usr/bin/python3", []string{"-u", file}, nil
	},
	".rb": func(_ *testing.T, file string) (string, []string, []string) { return "ruby", []string{file}, nil },
	".js": func(_ *testing.T, file string) (string, []string, []string) {
		return "node", []string{file}, []string{"NODE_PATH=" + filepath.Join(root, ".cache", "node", "node_modules")}
	},
	".go": func(t *testing.T, file string) (string, []string, []string) {
		line := all("`(go mod init [^`]+)`", document(t, "docs/without-a-library.md")) // the page's own
		require.Len(t, line, 1)
		env := []string{"GOPROXY=" + strings.Join(proxies(t), ","), "GOSUMDB=off", "GOWORK=off"}
		return "sh", []string{"-c", "cd '" + filepath.Dir(file) + "' && " + line[0]}, env
	},
}

// The page works with the producer of every language: jobs are enqueued, scheduled, done, retried,
// buried, listed and acted upon. The worker is the one of the page, and survives everything that a
// worker must survive.
func TestWithoutALibrary(t *testing.T) {
	blocks := readmeBlocks(t, "docs/without-a-library.md")
	program(t) // so that it is built once, and first
	ran := map[string]bool{"worker.py": true, "look.sh": true, "act.sh": true, "enqueue.sh": true, "http.sh": true}
	for end := range languages {
		ran["produce"+end] = true
		t.Run(end[1:], func(t *testing.T) {
			t.Parallel()
			walkThrough(t, blocks, end)
		})
	}
	for name := range blocks {
		require.True(t, ran[name], "no test runs %s", name)
	}
}

func walkThrough(t *testing.T, blocks map[string]string, end string) {
	s := serve(t)
	worker := s.program(t, blocks, "worker.py")
	producer := s.program(t, blocks, "produce"+end)
	published := time.Now()
	wrote, err := producer.CombinedOutput()
	require.NoError(t, err, "%s: is everything installed (make deps)? %s", producer, wrote)
	look(t, s, commands(blocks["look.sh"]), "scheduled", s.entry(t, "scheduled-jobs", "SendEmail"))

	for _, body := range []string{"garbage", "[1]", `{"class":"SendEmail","queue":"mails","retry":[]}`, `{"class":"SendEmail","queue":"mails","args":["eve@example.com","No jid"]}`} {
		s.vhost.Publish(t, "jobs.direct", "mails", amqp.Publishing{Body: []byte(body)})
	}
	out := start(t, worker)
	brokertest.Eventually(t, func() bool { return strings.Contains(out.String(), "email to ann@example.com: Hello!") }, "the email is sent")
	brokertest.Eventually(t, func() bool { return strings.Contains(out.String(), "email to eve@example.com: No jid") }, "a job without a jid is done")
	brokertest.Eventually(t, func() bool {
		dead, err1 := s.get("/api/dead-jobs?error=rejected")
		unreadable, err2 := s.get("/api/rejected")
		return err1 == nil && err2 == nil && gjson.Get(dead, "#").Int()+gjson.Get(unreadable, "#").Int() == 3
	}, "what is no job is rejected, and listed")
	look(t, s, commands(blocks["look.sh"]), "retries", s.entry(t, "retries", "ImportUsers"))
	act(t, s, commands(blocks["act.sh"]))

	s.cutOff(t, "Pika Python Client Library")
	for _, line := range commands(blocks["enqueue.sh"]) {
		s.run(t, line)
	}
	for _, line := range commands(blocks["http.sh"]) {
		_, status, said := s.task(t, s.vhost.Owner, line)
		require.Equal(t, http.StatusCreated, status, "%s\n%s", line, said)
	}
	for _, name := range []string{"bob", "cleo"} {
		brokertest.Eventually(t, func() bool { return strings.Contains(out.String(), "email to "+name+"@example.com: Hello!") }, "the email to %s is sent", name)
	}
	brokertest.EventuallyWithin(t, 40*time.Second, func() bool {
		return strings.Contains(out.String(), "email to ann@example.com: Still there?")
	}, "the scheduled email is sent")
	require.GreaterOrEqual(t, time.Since(published), 19*time.Second, "it came early")
	require.Equal(t, 1, strings.Count(out.String(), "Still there?"))
	require.NotContains(t, out.String(), "Good morning")
}

// cutOff makes the broker close the connections of a client library.
func (s *sidecar) cutOff(t *testing.T, product string) {
	t.Helper()
	brokertest.Eventually(t, func() bool { // the management API lists connections a moment later
		var connections []struct {
			Name   string
			Client struct{ Product string } `json:"client_properties"`
		}
		s.vhost.Do(t, http.MethodGet, "/api/vhosts/"+s.vhost.Name+"/connections", nil, &connections)
		closed := 0
		for _, c := range connections {
			if c.Client.Product == product {
				s.vhost.Do(t, http.MethodDelete, "/api/connections/"+url.PathEscape(c.Name), nil, nil)
				closed++
			}
		}
		return closed > 0
	}, "the connection of %s is closed", product)
}

// The worker of the page takes as many jobs as it has threads. A job that takes longer than the
// broker waits for a heartbeat does not cost the connection. After SIGTERM the jobs that run
// finish.
func TestWorkerWithoutALibrary(t *testing.T) {
	t.Parallel()
	const threads, queue = 4, "queue.mails"
	s := &sidecar{vhost: brokertest.New(t), bin: t.TempDir()}
	blocks := readmeBlocks(t, "docs/without-a-library.md")
	text := strings.NewReplacer("amqp://localhost\"", "amqp://localhost?heartbeat=2\"", // the broker waits for 4 s
		"handlers = {", "def nap(name):\n    time.sleep(8)\n    print(f\"{name} is over\", flush=True)\n\n\nhandlers = {\"Nap\": nap, ").Replace(blocks["worker.py"])
	require.Contains(t, text, fmt.Sprintf(`"%s", %d`+"\n", queue, threads))
	worker := s.program(t, map[string]string{"worker.py": text}, "worker.py")
	out := start(t, worker)
	brokertest.Eventually(t, func() bool { return s.vhost.HasQueue(t, queue) }, "the worker declares its queue")
	for n := range threads + 1 {
		s.vhost.Publish(t, "", queue, amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"Nap","queue":"mails","args":["nap %d"]}`, n)})
	}
	brokertest.Eventually(t, func() bool { return s.vhost.QueueLength(t, queue) == 1 }, "one job waits for a thread")
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	brokertest.Eventually(t, func() bool { return worker.Process.Signal(syscall.Signal(0)) != nil }, "the worker ends")
	for n := range threads {
		require.Equal(t, 1, strings.Count(out.String(), fmt.Sprintf("nap %d is over\n", n)), out)
	}
	require.NotContains(t, out.String(), "no connection", "a nap cost the connection")
	require.NotContains(t, out.String(), "Traceback")
	require.Equal(t, 1, s.vhost.QueueLength(t, queue), "the worker took a job after SIGTERM, or did not acknowledge one")
}

// look runs lines that each list something. Lines about the set show the entry with this jid. They
// run first, because the entry is not there for long.
func look(t *testing.T, s *sidecar, lines []string, set, jid string) {
	t.Helper()
	for _, aboutIt := range []bool{true, false} {
		for _, line := range lines {
			if strings.Contains(line, set) != aboutIt {
				continue
			}
			if said := s.run(t, line); aboutIt {
				require.Contains(t, said, jid, line)
			}
		}
	}
}

// act runs lines that each perform an action on the only entry of class ImportUsers, once it is
// where the line expects it.
func act(t *testing.T, s *sidecar, lines []string) {
	t.Helper()
	var jid string
	for _, line := range lines {
		set := "retries"
		if strings.Contains(line, "dead") {
			set = "dead-jobs"
		}
		jid = s.entry(t, set, "ImportUsers")
		s.run(t, strings.ReplaceAll(line, "JID", jid))
	}
	brokertest.Eventually(t, func() bool {
		_, err := s.get("/api/dead-jobs/" + jid)
		return err != nil && strings.HasSuffix(err.Error(), "404")
	}, "the dead job is deleted")
}

// unhurried lengthens the shortest wait before a retry, so that a slow machine does not retry
// before the test does.
var unhurried = strings.NewReplacer("+ 15 +", "+ 600 +")

// program returns a program of the page, with the address of this test's broker in it.
func (s *sidecar) program(t *testing.T, blocks map[string]string, name string) *exec.Cmd {
	t.Helper()
	require.Contains(t, blocks[name], "amqp://localhost")
	file := filepath.Join(s.project(t, blocks, name), name)
	interpreter, args, env := languages[filepath.Ext(name)](t, file)
	cmd := s.command(t, interpreter, args...)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// project returns a folder with files of the page, with the address of this test's broker in them.
func (s *sidecar) project(t *testing.T, blocks map[string]string, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		require.Contains(t, blocks, name)
		text := unhurried.Replace(strings.ReplaceAll(blocks[name], "amqp://localhost", s.vhost.AMQPURL()))
		file := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return folder
}

var curl = regexp.MustCompile(`^curl (?:-sS )?-u guest:guest (-i )?(?:-X (\w+) )?localhost:15680(/\S*)(?: \| jq)?$`)

// run runs a line of a shell block. It does the work of curl itself, because not every machine has
// curl.
func (s *sidecar) run(t *testing.T, line string) string {
	t.Helper()
	if strings.HasPrefix(line, "curl ") {
		parts := curl.FindStringSubmatch(line)
		require.NotNil(t, parts, "not understood: %s", line)
		body, err := s.request(cmp.Or(parts[2], http.MethodGet), parts[3])
		require.NoError(t, err, body)
		require.Equal(t, parts[1] == "", body != "", "-i is for an answer without a body: %s", line)
		return body
	}
	out, err := s.command(t, "sh", "-c", line).CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	return string(out)
}

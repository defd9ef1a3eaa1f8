package sidekiq

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// real has a real Sidekiq at work, a sidecar, workers of Millrace, and a bridge in a process of its
// own.
type real struct {
	*world
	ruby   string
	env    []string
	binary string
	api    string
	runs   string // file
	amqp   string // for the bridge
	from   string // Redis for the bridge
}

// envRuby names the Ruby of another Sidekiq than the machine's; envJobs how many jobs there are.
const (
	envRuby = "MILLRACE_TEST_SIDEKIQ"
	envJobs = "MILLRACE_TEST_SIDEKIQ_JOBS"
)

// Jobs of both sides, in all places of Sidekiq, while the bridge is killed and its connections
// break: none is lost.
func TestRealSidekiq(t *testing.T) {
	jobs, faults := 300, 6
	if set := os.Getenv(envJobs); set != "" {
		var err error
		jobs, err = strconv.Atoi(set)
		require.NoError(t, err)
		faults = 20
	}
	r := newReal(t)
	r.startSidekiq(t)
	want := r.push(t, jobs)
	stop := r.killBridge(t, faults)
	for _, jid := range append(r.enqueue(t, jobs/6), r.enqueueLetters(t, jobs/12)...) {
		want[jid] = "sidekiq"
	}
	missing := func() (left []string) {
		runs := r.counted(t)
		for jid := range want {
			if len(runs[jid]) == 0 {
				left = append(left, jid)
			}
		}
		return left
	}
	limit := 2*time.Minute + time.Duration(jobs)*10*time.Millisecond
	brokertest.EventuallyWithin(t, limit, func() bool { return len(missing()) == 0 }, "all jobs ran")
	kills := stop()

	doubled := 0
	for jid, runs := range r.counted(t) {
		require.Contains(t, want, jid)
		for _, side := range runs {
			require.Equal(t, want[jid], side, jid)
		}
		doubled += len(runs) - 1
	}
	t.Logf("%s: %d jobs, %d kills and cuts, 0 lost, %d ran again", strings.TrimSpace(r.version(t)), len(want), kills, doubled)
	require.LessOrEqual(t, doubled, kills*(batchSize+outAtOnce))
	require.Contains(t, r.ask(t, "/api/dead-jobs?jid=dead1"), "late")
	require.Empty(t, r.left(t))
}

func newReal(t *testing.T) *real {
	t.Helper()
	r := &real{world: &world{vhost: brokertest.New(t), redis: startRedis(t), log: &syncBuffer{}}, ruby: os.Getenv(envRuby)}
	if r.ruby == "" {
		r.ruby = "/usr/bin/ruby"
	}
	r.store = &store{connect(t, r.redis), "test"}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	dir := t.TempDir()
	r.runs = filepath.Join(dir, "runs")
	seen := filepath.Join(dir, "seen")
	require.NoError(t, os.Mkdir(seen, 0o700))
	r.env = append(os.Environ(), "REDIS_URL=redis://"+r.redis+"/0", "RUNS="+r.runs, "SEEN="+seen)
	r.amqp, r.from = r.vhost.AMQPURL(), "redis://"+r.redis+"/0"

	var err error
	r.binary, err = sidecar.Binary()
	require.NoError(t, err)
	p, err := sidecar.Start(sidecar.Config{Binary: r.binary, AMQPURL: r.vhost.AMQPURL(), ManagementURL: r.vhost.ManagementURL(),
		StreamURL: r.vhost.StreamURL(), LogLevel: "warn", Output: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	r.api = p.URL
	brokertest.Eventually(t, p.Ready, "the sidecar is ready")
	r.startWorker(t)
	r.startLetters(t)
	return r
}

// startWorker runs the jobs of the queue mails.
func (r *real) startWorker(t *testing.T) {
	worker := millrace.NewWorker(millrace.WorkerConfig{URL: r.vhost.AMQPURL(), Queues: []string{"mails"}, Logger: slog.New(slog.NewTextHandler(r.log, nil))})
	worker.HandleOthers(func(_ context.Context, job *millrace.RawJob) error {
		if got := string(job.Args); got != `[9007199254740993,"é"]` {
			return fmt.Errorf("args changed: %s", got)
		}
		return r.ran(job.JID)
	}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}

// startLetters runs the jobs of Active Job in the queue letters, with Millrace's adapter.
func (r *real) startLetters(t *testing.T) {
	run(t, r.millraceRuby(context.Background(), "../../../clients/ruby/exe/millrace-worker", "-q", "letters", "millrace.rb"))
}

// millraceRuby returns a program that uses the Ruby client, with Debian's Ruby and Rails.
func (r *real) millraceRuby(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/usr/bin/ruby", append([]string{"-I", "../../../clients/ruby/lib"}, args...)...)
	cmd.Dir, cmd.Stderr = "testdata", r.log
	cmd.Env = slices.Concat(r.env, []string{"MILLRACE_AMQP_URL=" + r.vhost.AMQPURL()})
	return cmd
}

// run runs a program until the test ends.
func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
}

func (r *real) ran(jid string) error {
	file, err := os.OpenFile(r.runs, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, "%s millrace\n", jid)
	return err
}

// counted returns on which side each job ran, once for each run.
func (r *real) counted(t *testing.T) map[string][]string {
	text, err := os.ReadFile(r.runs)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	runs := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		jid, side, _ := strings.Cut(strings.TrimSpace(line), " ")
		runs[jid] = append(runs[jid], side)
	}
	return runs
}

func (r *real) rubyCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.ruby, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = "testdata", r.env, r.log
	return cmd
}

func (r *real) version(t *testing.T) string {
	said, err := r.rubyCommand(t.Context(), "-rsidekiq", "-e", `print "Sidekiq #{Sidekiq::VERSION}"`).Output()
	require.NoError(t, err, "scripts/deps.sh imports installs Debian's Sidekiq")
	return string(said)
}

// startSidekiq runs the jobs of Sidekiq's queue legacy until the test ends.
func (r *real) startSidekiq(t *testing.T) {
	cmd := r.rubyCommand(context.Background(), "-rsidekiq/cli", "-e",
		`cli = Sidekiq::CLI.instance; cli.parse(%w[-r ./app.rb -q legacy -c 5 -t 5]); cli.run`)
	cmd.Stdout = r.log
	run(t, cmd)
}

// push enqueues jobs with Sidekiq's client, and returns on which side each must run.
func (r *real) push(t *testing.T, jobs int) map[string]string {
	cmd := r.rubyCommand(t.Context(), "push.rb")
	cmd.Env = append(cmd.Env, fmt.Sprint("JOBS=", jobs))
	said, err := cmd.Output()
	require.NoError(t, err)
	want := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(said)); lines.Scan(); {
		jid, side, found := strings.Cut(lines.Text(), " ")
		require.True(t, found, lines.Text())
		want[jid] = side
	}
	require.Equal(t, jobs, len(want)) // Len would print all of them
	return want
}

// enqueue enqueues jobs for Sidekiq's workers with Millrace's client, and returns their jids.
func (r *real) enqueue(t *testing.T, jobs int) (jids []string) {
	client, err := millrace.NewClient(millrace.ClientConfig{URL: r.vhost.AMQPURL()})
	require.NoError(t, err)
	defer client.Close()
	for n := range jobs {
		options := &millrace.EnqueueOptions{Queue: "legacy"}
		if n%2 == 0 {
			options.ScheduledAt = time.Now().Add(time.Duration(n%10) * time.Second)
		}
		jid, err := client.Enqueue(t.Context(), millrace.Args("Old", 9007199254740993, "é"), options)
		require.NoError(t, err)
		jids = append(jids, jid)
	}
	return jids
}

// enqueueLetters enqueues jobs of Active Job for Sidekiq's workers with Millrace's adapter, and
// returns their jids.
func (r *real) enqueueLetters(t *testing.T, jobs int) []string {
	cmd := r.millraceRuby(t.Context(), "millrace_push.rb")
	cmd.Env = append(cmd.Env, fmt.Sprint("JOBS=", jobs))
	said, err := cmd.Output()
	require.NoError(t, err)
	jids := strings.Fields(string(said))
	require.Len(t, jids, jobs)
	return jids
}

// killBridge starts the bridge, and kills it or breaks its connections some times. The function
// that it returns waits for the last one, and returns how many there were.
func (r *real) killBridge(t *testing.T, times int) (stop func() int) {
	back, front := brokertest.NewProxy(t, r.amqp), brokertest.NewProxy(t, r.from)
	var (
		mu  sync.Mutex
		cmd *exec.Cmd
	)
	start := func() {
		mu.Lock()
		defer mu.Unlock()
		cmd = exec.CommandContext(context.Background(), r.binary, "bridge", "sidekiq", "--amqp-url", back.URL(), "--redis-url", front.URL(),
			"--queue", "mails", "--queue", "letters", "--to-sidekiq", "legacy")
		cmd.Stderr = r.log
		require.NoError(t, cmd.Start())
	}
	kill := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	start()
	t.Cleanup(kill)
	done := make(chan int, 1)
	go func() {
		n := 0
		for ; n < times; n++ {
			time.Sleep(time.Second + rand.N(2*time.Second))
			switch n % 4 {
			case 1:
				back.Cut(t)
				back.Heal(t)
			case 3:
				front.Cut(t)
				front.Heal(t)
			default:
				kill()
				// Its lock is that of a bridge that does not answer. Another one would wait for
				// its end.
				_, _ = r.store.redis.do(context.Background(), "DEL", lockKey)
				start()
			}
		}
		done <- n
	}()
	return func() int { return <-done }
}

func (r *real) ask(t *testing.T, path string) string {
	said, err := exec.CommandContext(t.Context(), "curl", "-fsS", r.api+path).Output()
	require.NoError(t, err)
	return string(said)
}

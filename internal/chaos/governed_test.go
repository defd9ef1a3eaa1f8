package chaos

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/pause"
)

func TestGovernedQueues(t *testing.T) {
	w := begin(t, brokertest.Own(t), seed)
	governedQueues(w, 3, 3, 8)
	t.Log(w.note)
}

// governEvery is how often the queue is governed, or no longer.
const governEvery = 5 * time.Second

// governedQueues governs a queue and ends that, again and again, while programs with pika publish
// plain jobs for it and work on them, and while leaders, workers and the broker are killed.
func governedQueues(w *world, producers, workers, kills int) {
	w.two()
	w.ask(http.MethodPut, "/api/job-queues/governed", "")
	path := filepath.Join(w.t.TempDir(), "log")
	var running []*exec.Cmd
	start := func(what string, n int) *exec.Cmd {
		cmd := exec.Command(python, "testdata/govern.py", what, w.v.AMQPURL(), path, fmt.Sprintf("%s%d", what[:1], n), "governed")
		cmd.Stderr = os.Stderr
		require.NoError(w.t, cmd.Start())
		running = append(running, cmd)
		return cmd
	}
	end := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	defer func() {
		for _, cmd := range running {
			end(cmd)
		}
	}()
	var crew, sources []*exec.Cmd
	for i := range workers {
		crew = append(crew, start("work", i))
	}
	for i := range producers {
		sources = append(sources, start("publish", i))
	}
	switches := 0
	stop := w.inBackground(func(ctx context.Context) {
		for pause.For(ctx, governEvery) == nil {
			method, body := http.MethodPut, `{"key":"args.0","ahead":50}`
			if switches%2 == 1 {
				method, body = http.MethodDelete, ""
			}
			if w.tryAsk(method, "/api/governed-queues/governed", body) {
				switches++
			}
		}
	})
	w.killUntil(kills, 2*time.Second, 4*time.Second, shares{4, 4}, func() {
		i := w.random.IntN(workers)
		end(crew[i])
		crew[i] = start("work", workers+w.faults)
	})
	stop()
	for _, cmd := range sources {
		end(cmd)
	}
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool { return w.tryAsk(http.MethodPut, "/api/governed-queues/governed", "{}") }, "it is governed at the end")
	brokertest.EventuallyWithin(w.t, 3*time.Minute, func() bool { return len(readGoverned(w, path).missing()) == 0 }, "all jobs come")
	w.pause(quiet)
	l := readGoverned(w, path)
	w.jobs = len(l.sure)
	w.took, w.broken = time.Since(w.began), nil
	twice := l.twice()
	w.note = fmt.Sprintf("%d jobs, %d switches, %d refired", len(l.sure), switches, l.refired)
	w.must(len(l.missing()) == 0, "%d jobs are lost: %v", len(l.missing()), first(l.missing()))
	w.must(len(twice) == 0, "%d jobs came twice: %v", len(twice), first(twice))
	w.must(switches > 3, "it was switched %d times", switches)
}

// tryAsk reports whether a sidecar did what it was asked to.
func (w *world) tryAsk(method, path, body string) bool {
	leader := w.leads()
	if leader == nil {
		return false
	}
	status, _, err := leader.p.Do(method, path, body)
	return err == nil && (status < http.StatusMultipleChoices || status == http.StatusNotFound && method == http.MethodDelete)
}

// governedLog is what producers and workers have written down.
type governedLog struct {
	sure    map[string]bool
	firsts  map[string]int  // how often a job came that the broker did not mark as coming again
	came    map[string]bool // at all
	again   map[string]bool // of jobs that a leader had fired again, because it could not know
	refired int
}

func readGoverned(w *world, path string) *governedLog {
	l := &governedLog{map[string]bool{}, map[string]int{}, map[string]bool{}, map[string]bool{}, 0}
	file, err := os.Open(path)
	require.NoError(w.t, err)
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		switch fields := strings.Split(s.Text(), "\t"); {
		case len(fields) == 2 && fields[0] == "sure":
			l.sure[fields[1]] = true
		case len(fields) == 4 && fields[0] == "got":
			l.came[fields[1]] = true
			if fields[2] == "first" {
				l.firsts[fields[1]]++
			}
			if fields[3] == "refired" {
				l.again[fields[1]] = true
				l.refired++
			}
		}
	}
	return l
}

func (l *governedLog) missing() (all []string) {
	for jid := range l.sure {
		if !l.came[jid] {
			all = append(all, jid)
		}
	}
	return all
}

func (l *governedLog) twice() (all []string) {
	for jid, n := range l.firsts {
		if n > 1 && !l.again[jid] {
			all = append(all, fmt.Sprintf("%s %d times", jid, n))
		}
	}
	return all
}

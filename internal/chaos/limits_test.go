package chaos

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestLimitedJobs(t *testing.T) {
	w := begin(t, brokertest.Own(t), seed)
	limitedJobs(w, 600, 3, 12, 8)
	t.Log(w.note)
}

// perKey is how many jobs of a key may run at once.
const perKey = 3

// limitedJobs kills leaders, workers and the broker while workers run jobs that a limit per key
// counts. The workers are Python programs with pika, and write down when each job begins and ends.
func limitedJobs(w *world, jobs, keys, workers, kills int) {
	w.two()
	w.ask(http.MethodPut, "/api/limits/each", fmt.Sprintf(`{"per":["key"],"concurrency":%d}`, perKey))
	w.ask(http.MethodPut, "/api/job-queues/limited", "")
	crew := newCrew(w, workers)
	for i := range jobs {
		jid := fmt.Sprintf("limited-%05d", i)
		crew.jids = append(crew.jids, jid)
		body := fmt.Appendf(nil, `{"jid":%q,"class":"Limited","args":[],"queue":"limited","gate":{"key":"key-%d"}}`, jid, i%keys)
		w.publish(wire.Gated, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
	}
	w.jobs = jobs
	w.killUntil(kills, 300*time.Millisecond, 1500*time.Millisecond, shares{5, 4}, func() { crew.kill(w.random.IntN(workers)) })
	for done := -1; done < jobs; {
		before := done
		brokertest.EventuallyWithin(w.t, time.Minute, func() bool {
			done = crew.read().done()
			return done > before
		}, "more than %d of %d jobs are done; slots: %s", before, jobs, w.ask(http.MethodGet, "/api/slots", ""))
		w.pause(time.Second)
	}
	w.pause(quiet)
	all := w.epochs()
	w.unconfirmed, w.settling = moments(all, w.killed)
	w.took, w.broken = time.Since(w.began), nil
	log := crew.read()
	most, again := log.most(), log.again
	w.note = fmt.Sprintf("at most %d of a key at once, %d workers killed, %d begun again after a worker died", most, crew.killed, log.repeats)
	w.must(most == perKey, "%d jobs of one key ran at once, and the limit is %d", most, perKey)
	w.must(len(again) == 0, "%d jobs began again although their end was confirmed: %v", len(again), first(again))
	w.must(log.done() == jobs, "%d of %d jobs are done", log.done(), jobs)
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool { return string(w.ask(http.MethodGet, "/api/slots", "")) == "[]\n" }, "all slots are free")
}

// crew are the workers.
type crew struct {
	w      *world
	path   string
	jids   []string
	killed int

	serial  int
	running []*exec.Cmd
}

func newCrew(w *world, n int) *crew {
	c := &crew{w: w, path: filepath.Join(w.t.TempDir(), "log"), running: make([]*exec.Cmd, n)}
	for i := range c.running {
		c.start(i)
	}
	w.t.Cleanup(func() {
		for _, cmd := range c.running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return c
}

func (c *crew) start(i int) {
	c.serial++
	cmd := exec.Command(python, "testdata/limited.py", c.w.v.AMQPURL(), c.path, fmt.Sprintf("w%d", c.serial), "limited")
	cmd.Stderr = os.Stderr
	require.NoError(c.w.t, cmd.Start())
	c.running[i] = cmd
}

// kill kills a worker, writes that down, and starts another.
func (c *crew) kill(i int) {
	cmd := c.running[i]
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	c.killed++
	file, err := os.OpenFile(c.path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(c.w.t, err)
	_, err = fmt.Fprintf(file, "lost\t%s\t-\t-\t%f\n", cmd.Args[4], wire.Seconds(time.Now()))
	require.NoError(c.w.t, err)
	require.NoError(c.w.t, file.Close())
	c.start(i)
}

// workLog is what the workers have written down. An attempt is a jid and how often it had failed.
type workLog struct {
	running   map[string]attempt // by worker
	ended     map[string]bool    // attempts
	confirmed map[string]bool    // attempts whose end the broker has confirmed
	failed    map[string]bool    // attempts
	begun     map[string]int     // how often each attempt began
	mostOf    map[string]int     // by key
	again     []string           // attempts that began although their end was confirmed
	repeats   int                // attempts that began again
}

type attempt struct{ name, key string }

// read reads the log. A worker that was killed runs nothing from then on.
func (c *crew) read() *workLog {
	l := &workLog{running: map[string]attempt{}, ended: map[string]bool{}, confirmed: map[string]bool{}, failed: map[string]bool{}, begun: map[string]int{}, mostOf: map[string]int{}}
	file, err := os.Open(c.path)
	if os.IsNotExist(err) {
		return l
	}
	require.NoError(c.w.t, err)
	defer file.Close()
	var lines [][]string
	for s := bufio.NewScanner(file); s.Scan(); {
		if fields := strings.Split(s.Text(), "\t"); len(fields) == 5 {
			lines = append(lines, fields)
		}
	}
	at := func(fields []string) float64 {
		n, _ := strconv.ParseFloat(fields[4], 64)
		return n
	}
	slices.SortStableFunc(lines, func(a, b []string) int { return int(1e6 * (at(a) - at(b))) })
	for _, fields := range lines {
		l.take(fields[0], fields[1], attempt{fields[2], fields[3]})
	}
	return l
}

// take takes in one line.
func (l *workLog) take(what, worker string, a attempt) {
	switch what {
	case "begins":
		if l.confirmed[a.name] {
			l.again = append(l.again, a.name)
		}
		if l.begun[a.name]++; l.begun[a.name] > 1 {
			l.repeats++
		}
		l.running[worker] = a
		n := 0
		for _, other := range l.running {
			if other.key == a.key {
				n++
			}
		}
		l.mostOf[a.key] = max(l.mostOf[a.key], n)
	case "ends":
		l.ended[a.name] = true
		delete(l.running, worker)
	case "lost":
		delete(l.running, worker)
	case "dropped": // a worker died after it had reported the end, and before it could write that down
		l.confirmed[a.name] = l.confirmed[a.name] || l.ended[a.name]
	case "failed":
		l.failed[a.name] = true
	case "confirmed":
		l.confirmed[a.name] = true
	}
}

// done returns how many jobs have ended and are not to be retried.
func (l *workLog) done() (n int) {
	for name := range l.confirmed {
		jid, count, _ := strings.Cut(name, "/")
		if count == "0" && !l.failed[name] || count == "1" && l.failed[jid+"/0"] {
			n++
		}
	}
	return n
}

// most returns the most jobs of one key that ran at once.
func (l *workLog) most() int { return slices.Max(append(slices.Collect(maps.Values(l.mostOf)), 0)) }

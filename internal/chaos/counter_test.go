package chaos

import (
	"bufio"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// counter counts jobs by jid. Its client does not use Millrace's code, and runs in its own process.
type counter struct {
	mu     sync.Mutex
	jobs   map[string]*arrived
	epochs map[int64]time.Time // when the first job of an epoch arrived
	total  int                 // copies
	again  int                 // copies that the broker redelivered
	starts int                 // how often the client began to consume
}

// arrived records the deliveries of one jid.
type arrived struct {
	first  time.Time
	copies map[string]int // by the publish that brought them
	n      int
}

// python is Debian's own Python, for which pika is installed.
const python = "/usr/bin/python3"

func newCounter() *counter {
	return &counter{jobs: map[string]*arrived{}, epochs: map[int64]time.Time{}}
}

func startCounter(w *world, queues ...string) *counter {
	w.t.Helper()
	c := newCounter()
	cmd := exec.Command(python, append([]string{"testdata/count.py", w.v.AMQPURL()}, queues...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(out)
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	brokertest.Eventually(w.t, func() bool { return c.began() > 0 }, "the client consumes")
	return c
}

func (c *counter) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		c.line(lines.Text())
	}
}

func (c *counter) line(text string) {
	fields := strings.Split(text, "\t")
	if len(fields) == 6 {
		seconds, _ := strconv.ParseFloat(fields[5], 64)
		c.arrive(fields[1], fields[2]+"/"+fields[3], fields[4] == "1", time.UnixMicro(int64(seconds*1e6)))
	} else if text == "# consuming" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.starts++
	}
}

// arrive counts a copy of a job. publish is the epoch and the number of its publish.
func (c *counter) arrive(jid, publish string, redelivered bool, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[jid]
	if j == nil {
		j = &arrived{first: at, copies: map[string]int{}}
		c.jobs[jid] = j
	}
	// The broker redelivers a copy if it was not acknowledged when the connection was lost. The
	// headers of the publish identify such a copy, or else the redelivered flag.
	if known := j.copies[publish] > 0; known && (publish != "-/-" || redelivered) {
		c.again++
		return
	}
	j.copies[publish]++
	j.n++
	c.total++
	number, _, _ := strings.Cut(publish, "/")
	if epoch, err := strconv.ParseInt(number, 10, 64); err == nil && c.epochs[epoch].IsZero() {
		c.epochs[epoch] = at
	}
}

// forgetTorn removes deliveries that were no jobs.
func (c *counter) forgetTorn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.jobs, func(jid string, _ *arrived) bool { return strings.HasPrefix(jid, "?") })
}

func (c *counter) began() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts
}

// distinct returns the number of jids that arrived.
func (c *counter) distinct() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.jobs)
}

// of returns how many copies of a job arrived, and when the first did.
func (c *counter) of(jid string) (n int, first time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[jid]; j != nil {
		return j.n, j.first
	}
	return 0, time.Time{}
}

// publishes returns the publishes that brought copies of a job.
func (c *counter) publishes(jid string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[jid]; j != nil {
		return slices.Sorted(maps.Keys(j.copies))
	}
	return nil
}

func (c *counter) copies() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// newest returns the newest epoch from which a job arrived, and when the first of these jobs did.
func (c *counter) newest() (epoch int64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	epoch = -1
	for e := range c.epochs {
		epoch = max(epoch, e)
	}
	return epoch, c.epochs[epoch]
}

// furthest returns, for each epoch, the number of its last publish that arrived.
func (c *counter) furthest() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := map[string]int64{}
	for _, j := range c.jobs {
		for publish := range j.copies {
			epoch, text, _ := strings.Cut(publish, "/")
			seq, _ := strconv.ParseInt(text, 10, 64)
			last[epoch] = max(last[epoch], seq)
		}
	}
	return last
}

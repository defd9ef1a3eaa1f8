package crashtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "millrace-crash")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "millrace")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/millrace-jobs/millrace/cmd/millrace").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
})

// process is one millrace serve.
type process struct {
	cmd  *exec.Cmd
	url  string
	name string
}

func serve(t *testing.T, v *brokertest.Vhost, name, stateDir string) *process {
	t.Helper()
	binary, err := build()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	args := []string{"serve", "--amqp-url", v.AMQPURL(), "--management-url", v.ManagementURL(), "--http-addr", addr, "--identity", name, "--auth", "none", "--log-level", "warn"}
	if stateDir != "" {
		args = append(args, "--state-dir", stateDir)
	}
	p := &process{cmd: exec.Command(binary, args...), url: "http://" + addr, name: name}
	log := &lines{t: t, name: name}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	require.NoError(t, p.cmd.Start())
	t.Cleanup(p.kill)
	return p
}

// kill is kill -9.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// lines passes a process's output on to the test's log.
type lines struct {
	t    *testing.T
	name string
}

func (l *lines) Write(b []byte) (int, error) {
	l.t.Logf("%s: %s", l.name, b)
	return len(b), nil
}

// counter is a plain consumer that counts jobs by jid.
type counter struct {
	mu    sync.Mutex
	seen  map[string]int
	first map[string]time.Time
	total int
	gaps  []time.Duration // between one job and the next
	last  time.Time
}

func count(t *testing.T, v *brokertest.Vhost, queue string) *counter {
	t.Helper()
	c := &counter{seen: map[string]int{}, first: map[string]time.Time{}}
	c.consume(t, v, queue)
	return c
}

// consume begins, or begins again on a broker that came back. Jobs that were not acknowledged come again: they are not counted twice.
func (c *counter) consume(t *testing.T, v *brokertest.Vhost, queue string) {
	t.Helper()
	ch := v.Channel(t)
	_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-max-priority": int32(10)})
	require.NoError(t, err)
	require.NoError(t, ch.Qos(500, 0, false))
	jobs, err := ch.Consume(queue, "", false, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range jobs {
			c.add(d)
			if d.Ack(false) != nil {
				return
			}
		}
	}()
}

func (c *counter) add(d amqp.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := d.MessageId
	if d.Redelivered && c.seen[key] > 0 {
		return // the same copy: it was not acknowledged when the connection died
	}
	now := time.Now()
	if c.seen[key]++; c.seen[key] == 1 {
		c.first[key] = now
	}
	if !c.last.IsZero() {
		c.gaps = append(c.gaps, now.Sub(c.last))
	}
	c.last = now
	c.total++
}

func (c *counter) distinct() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

func (c *counter) doubled() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for jid, n := range c.seen {
		if n > 1 {
			all = append(all, fmt.Sprintf("%s×%d", jid, n))
		}
	}
	return all
}

// schedule publishes n entries that fall due one after another from a time on, within a span. Half are scheduled, half are retries.
func schedule(t *testing.T, v *brokertest.Vhost, n int, from time.Time, span time.Duration) map[string]time.Time {
	t.Helper()
	due := map[string]time.Time{}
	batches := map[string][]amqp.Publishing{}
	for i := range n {
		jid := fmt.Sprintf("job-%06d", i)
		at := from.Add(span * time.Duration(i) / time.Duration(n)).Truncate(time.Microsecond)
		due[jid] = at
		stream, form := wire.ScheduledJobs, `{"type":"scheduled_job","jid":%q,"scheduled_at":%f,"job":{"class":"C","args":[%d],"queue":"work"}}`
		if i%2 == 1 {
			stream, form = wire.Retries, `{"type":"retry","jid":%q,"retry_at":%f,"retry_count":1,"job":{"class":"C","args":[%d],"queue":"work"}}`
		}
		body := fmt.Appendf(nil, form, jid, wire.Seconds(at), i)
		batches[stream] = append(batches[stream], amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
	}
	for stream, messages := range batches {
		v.Publish(t, "", stream, messages...)
	}
	return due
}

// warmUp has one job fired, so that the queue is bound: what goes through jobs.unrouted may come twice if a leader dies then.
func warmUp(t *testing.T, v *brokertest.Vhost, c *counter) {
	t.Helper()
	body := fmt.Appendf(nil, `{"type":"scheduled_job","jid":"warm-up","scheduled_at":1,"job":{"class":"C","queue":"work"}}`)
	v.Publish(t, "", wire.ScheduledJobs, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
	brokertest.Eventually(t, func() bool { return c.distinct() == 1 }, "the first job arrives")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, wire.Unrouted) == 0 }, "it was acknowledged")
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.seen)
	clear(c.first)
}

// epochs reads the journal: how many leaderships there were, and how many of them ended while fires were unconfirmed.
func epochs(t *testing.T, v *brokertest.Vhost) (all, dirty int) {
	t.Helper()
	var fired, confirmed int64
	for _, d := range v.ReadStream(t, wire.Journal) {
		headers := map[string]any(d.Headers)
		if deed, ok := wire.DeedOf(headers); ok {
			fired, confirmed = max(fired, deed.Seq), max(confirmed, deed.Confirmed)
			continue
		}
		j, err := wire.ParseJournal(d.Body)
		require.NoError(t, err)
		confirmed = max(confirmed, j.Through)
		if j.Type == wire.TypeOpened {
			if fired > confirmed {
				dirty++
			}
			all++
			fired, confirmed = 0, 0
		}
	}
	return all, dirty
}

// TestSidecarKilled kills the leader ten times while 10,000 entries fall due: each job comes exactly once.
func TestSidecarKilled(t *testing.T) {
	const jobs, kills = 10_000, 10
	v := brokertest.New(t)
	seed := uint64(20261120)
	random := rand.New(rand.NewPCG(seed, 1))
	p := serve(t, v, "s0", "")
	c := count(t, v, "queue.work")
	brokertest.Eventually(t, func() bool { return ready(p) }, "the sidecar is ready")
	warmUp(t, v, c)
	from := time.Now().Add(3 * time.Second)
	due := schedule(t, v, jobs, from, 20*time.Second)
	dir := t.TempDir()
	for i := range kills {
		brokertest.Eventually(t, func() bool { return leads(p) }, "it leads after %d kills", i)
		was := c.distinct()
		brokertest.Eventually(t, func() bool { return c.distinct() > was+20 || c.distinct() == jobs }, "fires flow after %d kills", i)
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond) // when a crash comes is up to chance
		p.kill()
		stateDir := ""
		if i%2 == 0 {
			stateDir = dir
		}
		p = serve(t, v, fmt.Sprintf("s%d", i+1), stateDir)
	}
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return c.distinct() == jobs }, "all jobs arrive")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.work") == 0 }, "the queue is empty")
	require.Empty(t, c.doubled(), "seed %d", seed)
	for jid, at := range due {
		require.False(t, c.first[jid].Before(at), "%s came early", jid)
	}
	all, dirty := epochs(t, v)
	t.Logf("%d epochs, %d ended with unconfirmed fires", all, dirty)
	require.Greater(t, all, kills)
	require.GreaterOrEqual(t, dirty, kills/2, "too few kills fell while fires were unconfirmed")
}

// TestBrokerKilled kills the broker twice while 4,000 entries fall due: nothing is lost.
func TestBrokerKilled(t *testing.T) {
	const jobs = 4_000
	v := brokertest.Own(t)
	p := serve(t, v, "s0", "")
	c := count(t, v, "queue.work")
	brokertest.Eventually(t, func() bool { return ready(p) }, "the sidecar is ready")
	warmUp(t, v, c)
	schedule(t, v, jobs, time.Now().Add(3*time.Second), 6*time.Second)
	for i := range 2 {
		was := c.distinct()
		brokertest.Eventually(t, func() bool { return c.distinct() > was+200 }, "fires flow before kill %d", i)
		v.Kill(t)
		v.Restart(t)
		c.consume(t, v, "queue.work")
	}
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return c.distinct() == jobs }, "all jobs arrive")
	t.Logf("%d jobs came more than once: their fires were unconfirmed when the broker died", len(c.doubled()))
	require.Less(t, len(c.doubled()), 2*1024, "more than two windows")
}

// TestStandbyTakesOver has a second sidecar fire within three seconds of the first one's death.
func TestStandbyTakesOver(t *testing.T) {
	const jobs = 3_000
	v := brokertest.New(t)
	first := serve(t, v, "first", "")
	brokertest.Eventually(t, func() bool { return leads(first) }, "the first leads")
	second := serve(t, v, "second", "")
	brokertest.Eventually(t, func() bool { return ready(second) }, "the second is ready")
	c := count(t, v, "queue.work")
	warmUp(t, v, c)
	schedule(t, v, jobs, time.Now().Add(2*time.Second), 10*time.Second)
	brokertest.Eventually(t, func() bool { return c.distinct() > 300 }, "fires flow")
	first.kill()
	killed := time.Now()
	was := c.distinct()
	brokertest.Eventually(t, func() bool { return c.distinct() > was+200 }, "the second fires")
	took := time.Since(killed)
	brokertest.Eventually(t, func() bool { return c.distinct() == jobs }, "all jobs arrive")
	require.Empty(t, c.doubled())
	t.Logf("followed within %v", took)
	require.Less(t, took, 3*time.Second)
}

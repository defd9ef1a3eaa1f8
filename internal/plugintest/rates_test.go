//go:build plugin

package plugintest

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// pairs is how often TestRates measures each pair. It is left out if this is 0.
var pairs = flag.Int("rates", 0, "measure the rates of delayed exchanges in so many pairs")

// rated is one way to publish.
type rated struct {
	exchange, key string
	headers       amqp.Table
	queue         string // which is emptied afterwards
}

// TestRates measures how fast delayed exchanges take messages, beside a stream and RabbitMQ's own
// types of exchanges, in interleaved pairs. The first pair compares an exchange with itself.
func TestRates(t *testing.T) {
	if *pairs == 0 {
		t.Skip("-rates measures")
	}
	n := start(t, "millrace.sidecar = /bin/false\n")
	n.put(t, "/api/queues/%2F/scheduled_jobs", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`)
	n.put(t, "/api/queues/%2F/plain-stream", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`)
	n.awaitIndex(t)
	a := n.application(t)
	w := tabwriter.NewWriter(os.Stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "published\tbeside\tmessages/s\tratio\t(lowest, highest)\tCPU of the node\n")
	compare := func(name, beside string, base, ours rated) {
		rates, ratios, cpu := []float64{}, []float64{}, []float64{}
		for i := range *pairs + 1 {
			b, o := n.rate(t, base), n.rate(t, ours)
			if i > 0 { // the first pair warms up
				rates, ratios, cpu = append(rates, o.perSecond), append(ratios, o.perSecond/b.perSecond), append(cpu, o.cpu/b.cpu)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.2f\t(%.2f, %.2f)\t%.2f\n", name, beside, median(rates), median(ratios), slices.Min(ratios), slices.Max(ratios), median(cpu))
	}
	delay := amqp.Table{"x-delay": hour} // of both, so that they are the same message
	plain, later := rated{exchange: "", key: "plain-stream", headers: delay}, rated{exchange: "rates.later", key: "key", headers: delay}
	a.declare(t, "rates.later", "direct")
	compare("to a stream", "the same", plain, plain)
	compare("with a delay", "to a stream", plain, later)
	for _, c := range []struct {
		inner    string
		bindings int
	}{{"direct", 1}, {"fanout", 1}, {"headers", 1}, {"topic", 50}, {"topic", 1000}} {
		var both []rated
		for _, kind := range []string{c.inner, delayedType} {
			name := fmt.Sprint("rates.", kind, ".", c.inner, c.bindings)
			r := rated{exchange: name, key: "a.b7.c", queue: name, headers: amqp.Table{"n": "7"}}
			require.NoError(t, a.ExchangeDeclare(name, kind, true, false, false, false, amqp.Table{"x-delayed-type": c.inner}))
			_, err := a.QueueDeclare(name, true, false, false, false, nil)
			require.NoError(t, err)
			for i := range c.bindings {
				args := amqp.Table{"x-match": "all", "n": strconv.Itoa(7 + i)}
				require.NoError(t, a.QueueBind(name, strings.ReplaceAll("a.bN.*", "N", strconv.Itoa(7+i)), name, false, args))
				if c.inner == "direct" {
					require.NoError(t, a.QueueBind(name, r.key, name, false, nil))
				}
			}
			both = append(both, r)
		}
		compare(fmt.Sprintf("%s, %d bindings, at once", c.inner, c.bindings), "its own type", both[0], both[1])
	}
	require.NoError(t, w.Flush())
}

// TestCPU measures the CPU time of the node for plain publishes while the plugin is enabled, beside
// that while it is not.
func TestCPU(t *testing.T) {
	if *pairs == 0 {
		t.Skip("-rates measures")
	}
	n := start(t, "millrace.sidecar = /bin/false\n")
	_, err := n.application(t).QueueDeclare("plain", true, false, false, false, nil)
	require.NoError(t, err)
	cpu := func(plugins ...string) (ms float64) {
		require.NoError(t, n.SetPlugins(t.Context(), plugins...))
		for range 3 {
			ms += n.rate(t, rated{exchange: "", key: "plain", queue: "plain"}).cpu
		}
		return ms
	}
	var same, enabled []float64
	for i := range *pairs + 1 {
		off, on, again := cpu(), cpu(plugin), cpu()
		if i > 0 { // the first round warms up
			same, enabled = append(same, again/off), append(enabled, 2*on/(off+again))
		}
	}
	fmt.Fprintf(os.Stderr, "CPU of plain publishes, without the plugin twice: %.3f (%.3f, %.3f); with it: %.3f (%.3f, %.3f)\n",
		median(same), slices.Min(same), slices.Max(same), median(enabled), slices.Min(enabled), slices.Max(enabled))
}

type measuredRate struct{ perSecond, cpu float64 }

// rate publishes persistent messages of 200 bytes, with at most 500 unconfirmed.
func (n *node) rate(t *testing.T, r rated) measuredRate {
	t.Helper()
	const count, window = 20_000, 500
	a := n.application(t)
	defer a.Close()
	confirms := make([]*amqp.DeferredConfirmation, count)
	body := bytes.Repeat([]byte("text "), 40)
	before, began := n.cpu(t), time.Now()
	for i := range confirms {
		if i >= window {
			require.True(t, confirms[i-window].Wait())
		}
		var err error
		confirms[i], err = a.PublishWithDeferredConfirm(r.exchange, r.key, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: r.headers, Body: body})
		require.NoError(t, err)
	}
	for _, c := range confirms[count-window:] {
		require.True(t, c.Wait())
	}
	took := time.Since(began)
	used := n.cpu(t) - before
	if r.queue != "" {
		purged, err := a.QueuePurge(r.queue, false)
		require.NoError(t, err)
		require.Equal(t, count, purged)
	}
	return measuredRate{count / took.Seconds(), used}
}

// cpu returns the milliseconds of CPU time that the node has used.
func (n *node) cpu(t *testing.T) float64 {
	t.Helper()
	text, err := n.Eval(t.Context(), "element(1, erlang:statistics(runtime)).")
	require.NoError(t, err)
	ms, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return ms
}

func median[N cmp.Ordered](all []N) N {
	slices.Sort(all)
	return all[len(all)/2]
}

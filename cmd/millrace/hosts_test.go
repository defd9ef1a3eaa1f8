package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// way has all addresses of one node.
type way []*brokertest.Proxy

// newWay returns addresses that lead to the broker. Two of them stand for two nodes of a cluster.
func newWay(t *testing.T, v *brokertest.Vhost) way {
	w := way{brokertest.NewProxy(t, v.AMQPURL()), brokertest.NewProxy(t, v.ManagementURL())}
	if v.StreamURL() != "" {
		w = append(w, brokertest.NewProxy(t, v.StreamURL()))
	}
	return w
}

func (w way) cut(t *testing.T) {
	t.Helper()
	for _, p := range w {
		p.Cut(t)
	}
}

func (w way) heal(t *testing.T) {
	t.Helper()
	for _, p := range w {
		p.Heal(t)
	}
}

// by returns the settings of a sidecar that can use any of the addresses.
func by(v *brokertest.Vhost, ways ...way) sidecarSettings {
	s := sidecarSettings{}
	add := func(list *string, p *brokertest.Proxy) { *list = strings.TrimPrefix(*list+","+p.URL(), ",") }
	for _, w := range ways {
		add(&s.AMQPURL, w[0])
		add(&s.ManagementURL, w[1])
		if v.StreamURL() != "" {
			add(&s.StreamURL, w[2])
		}
	}
	return s
}

func TestSidecarMovesToAnotherHost(t *testing.T) {
	v := brokertest.New(t)
	one, two := newWay(t, v), newWay(t, v)
	settings := by(v, one, two)
	settings.Auth = "none"
	s := start(t, settings)
	s.leads(t)
	s.ready(t)
	command := func(line ...string) result { return millrace(t, append(line, s.flags...)...) }
	for i, cut := range []way{one, two, one} {
		r := millrace(t, "schedule", "Mail", "--in", "1h", "--amqp-url", settings.AMQPURL)
		require.Zero(t, r.code, r.err)
		jid := strings.TrimSpace(r.out)
		brokertest.Eventually(t, func() bool { return command("scheduled", "show", jid).code == 0 }, "it is listed")

		cut.cut(t)
		begun := time.Now()
		brokertest.Eventually(t, func() bool {
			return strings.Contains(command("scheduled", "trigger", jid).out, "sent to its queue")
		}, "a command is carried out")
		require.Less(t, time.Since(begun), 5*time.Second, "cut %d", i)
		require.Equal(t, jid, gjson.GetBytes(take(t, v, "queue.default").Body, "jid").String())
		s.ready(t)
		r = command("queues")
		require.Contains(t, r.out, "default", r.err)
		cut.heal(t)
	}
	require.NotContains(t, s.log.String(), v.Owner.Password)
}

func TestCommandsSkipDeadHost(t *testing.T) {
	v := brokertest.New(t)
	dead := newWay(t, v)
	dead.cut(t)
	settings := by(v, dead, newWay(t, v))
	s := start(t, settings)
	s.leads(t)
	for range 3 { // in any order
		r := millrace(t, "schedule", "Mail", "--in", "1h", "--amqp-url", settings.AMQPURL)
		require.Zero(t, r.code, r.err)
		r = millrace(t, append([]string{"doctor", "--amqp-url", settings.AMQPURL, "--management-url", settings.ManagementURL}, s.flags[:2]...)...)
		require.Contains(t, r.out, "virtual host "+v.Name)
		require.Contains(t, r.out, "management API  answers")
		require.Regexp(t, `(ok|note)  +clocks`, r.out)
		require.NotContains(t, r.out, v.Owner.Password)
	}
}

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestProcessesWithRealBroker(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	v.Publish(t, "", wire.Heartbeats, amqp.Publishing{Body: fmt.Appendf(nil, `{"type":"heartbeat","identity":"h:1:x","hostname":"h","pid":1,"tag":"x",
		"concurrency":10,"busy":3,"beat":%f,"rss_kb":204800,"queues":["low"],"version":"1.0"}`, wire.Seconds(time.Now()))})
	var out string
	brokertest.Eventually(t, func() bool {
		r := millrace(t, append([]string{"processes"}, s.flags...)...)
		require.Zero(t, r.code, r.err)
		out = r.out
		return out != "none\n"
	}, "the process is shown")
	require.Regexp(t, `h:1:x +live +[0-9]+s ago +3/10 +200 MB +1.0 +low\n1 in all\n`, out)

	stop := append([]string{"processes", "stop", "h:1:x"}, s.flags...)
	require.Contains(t, millrace(t, stop...).err, "no process listens to jobs.control")
	require.Contains(t, millrace(t, append([]string{"processes", "quiet", "*", "--yes"}, s.flags...)...).err, "no process listens to jobs.control")
	require.Equal(t, "none\n", millrace(t, append([]string{"journal"}, s.flags...)...).out, "a failed action is not journaled")
	ch := v.Channel(t)
	_, err := ch.QueueDeclare("control", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("control", "", wire.Control, false, nil))
	control, err := ch.Consume("control", "", true, true, false, false, nil)
	require.NoError(t, err)
	r := millrace(t, stop...)
	require.Equal(t, "asked process \"h:1:x\" to stop\n", r.out, r.err)
	require.Contains(t, string((<-control).Body), `"identity":""`)
	require.Contains(t, string((<-control).Body), `"op":"stop","identity":"h:1:x"`)
}

// A queue whose workers hang, and a job that runs much longer than usual, need attention without
// any configuration.
func TestHangingWorkersNeedAttention(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	says := func(args ...string) string {
		r := millrace(t, append(args, s.flags...)...)
		return r.out + r.err
	}
	require.Contains(t, says("queues", "make", "exports"), "exports")
	ch := v.Channel(t)
	require.NoError(t, ch.Qos(2, 0, false))
	for i := range 5 {
		v.Publish(t, "", "queue.exports", amqp.Publishing{Body: fmt.Appendf(nil, `{"jid":"e%d","class":"Export","args":[]}`, i)})
	}
	taken, err := ch.Consume("queue.exports", "", false, false, false, false, nil)
	require.NoError(t, err)
	for range 2 {
		<-taken
	}
	now := time.Now()
	for range 20 {
		v.Publish(t, "", wire.JobMetrics, amqp.Publishing{Body: fmt.Appendf(nil, `{"type":"job_metric","timestamp":%f,"job_class":"Export","queue":"exports","duration_ms":900,"status":"success"}`, wire.Seconds(now)-60)})
	}
	v.Publish(t, "", wire.Heartbeats, amqp.Publishing{Body: fmt.Appendf(nil, `{"type":"heartbeat","identity":"h:1:x","beat":%f,"concurrency":2,"busy":2,"queues":["exports"],
		"work":[{"jid":"e0","class":"Export","queue":"exports","started_at":%f},{"jid":"e1","class":"Export","queue":"exports","started_at":%f}]}`, wire.Seconds(now), wire.Seconds(now)-400, wire.Seconds(now)-61)})
	brokertest.Eventually(t, func() bool {
		return regexpMatch(`critical +saturated +exports +3 jobs wait, all 2 slots of its workers are busy, and none was taken for 1 min 1 s`, says("attention")) &&
			regexpMatch(`warning +job_stuck +e0 +Export has run for 6 min 40 s on h:1:x, 4\d\d times as long as usual`, says("attention"))
	}, "both are named")
	require.Regexp(t, `exports +saturated`, says("queues"))
	require.Contains(t, says("job", "e0"), "running (stuck)")
}

// A running job is cancelled, with a real worker and a real command.
func TestRunningJobIsCancelled(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	says := func(args ...string) string {
		r := millrace(t, append(args, s.flags...)...)
		return r.out + r.err
	}
	cmd := clitest.Process(t, "worker", "--exec", plan(t, "queues: [default]\nclasses: {Hang: {command: [sleep, \"600\"]}}"), "--amqp-url", v.AMQPURL())
	require.NoError(t, cmd.Start())
	brokertest.Eventually(t, func() bool { return !strings.Contains(says("processes"), "none") }, "the worker is heard")
	require.Contains(t, says("job", "cancel", "hangs", "--yes"), "no worker process says that it runs this job")
	v.Publish(t, "", "queue.default", amqp.Publishing{Body: []byte(`{"jid":"hangs","class":"Hang","args":[]}`)})
	brokertest.Eventually(t, func() bool { return strings.Contains(says("job", "hangs"), "running") }, "it runs")
	require.Contains(t, says("job", "cancel", "hangs"), "add --yes to do it")
	require.Regexp(t, `^job hangs: asked process "\S+" to cancel it\n$`, says("job", "cancel", "hangs", "--reason", "it hangs", "--yes"))
	brokertest.Eventually(t, func() bool {
		return regexpMatch(`discarded +default(.|\n)*cancelled +\S+ +it hangs +`+v.Owner.Name, says("job", "hangs"))
	}, "it has ended, and who asked for it is known")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

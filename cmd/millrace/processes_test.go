package main

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestProcessesOfARealBroker(t *testing.T) {
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
	require.Equal(t, "none\n", millrace(t, append([]string{"journal"}, s.flags...)...).out, "what was not done is not journaled")
	ch := v.Channel(t)
	_, err := ch.QueueDeclare("control", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("control", "", wire.Control, false, nil))
	told, err := ch.Consume("control", "", true, true, false, false, nil)
	require.NoError(t, err)
	r := millrace(t, stop...)
	require.Equal(t, "asked process \"h:1:x\" to stop\n", r.out, r.err)
	require.Contains(t, string((<-told).Body), `"identity":""`)
	require.Contains(t, string((<-told).Body), `"op":"stop","identity":"h:1:x"`)
}

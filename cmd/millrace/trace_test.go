package main

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// At the level debug, the log lines with a job's jid have its history, in order.
func TestDebugLinesOfJob(t *testing.T) {
	v := brokertest.New(t)
	r := start(t, beside(v))
	r.leads(t)
	entry := fmt.Sprintf(`{"type":"scheduled_job","jid":"job-1","scheduled_at":%f,"job":{"class":"Mail","args":[],"queue":"mails"}}`,
		wire.Seconds(time.Now().Add(time.Second)))
	v.Publish(t, "", wire.ScheduledJobs, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(entry)})
	lines := regexp.MustCompile(`msg="([^"]*)" jid=job-1.*`)
	brokertest.Eventually(t, func() bool { return len(lines.FindAllString(r.log.String(), -1)) >= 4 }, "four lines")

	seen := map[string]int{}
	var all []string
	for i, line := range lines.FindAllStringSubmatch(r.log.String(), -1) {
		seen[line[1]], all = i, append(all, line[0])
	}
	require.Len(t, seen, 3, all)
	require.Regexp(t, `view: read.* what=scheduled class=Mail queue=mails.*scheduled_jobs@`, all[0])
	require.Regexp(t, `scheduler: published.* op=fired key=mails entry=scheduled_jobs@`, all[1])
	require.Contains(t, all, `msg="scheduler: answered" jid=job-1 confirmed=true`)
	require.Regexp(t, `view: read.* what=fired class=Mail queue=mails.*job_journal@`, all[seen["view: read"]])
}

package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/help"
	"github.com/millrace-jobs/millrace/wire"
)

func TestReadCommandsWithRealBroker(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	admin := v.AddUser(t, "admin", brokertest.Permissions{Tags: "administrator"})
	s := start(t, beside(v))
	s.leads(t)
	says := func(args ...string) string {
		r := millrace(t, append(args, s.flags...)...)
		return r.out + r.err
	}
	schedule(t, v, time.Hour, "s1")
	at := wire.Seconds(time.Now().Add(time.Hour))
	for i := range 2 {
		v.Publish(t, "", wire.Retries, amqp.Publishing{Body: fmt.Appendf(nil, `{"type":"retry","jid":"r%d","retry_at":%f,"retry_count":1,"error_class":"Timeout",
			"error_message":"no answer in %d ms","job":{"jid":"r%d","class":"Mail","queue":"low","args":[]}}`, i, at, 30+i, i)})
	}
	brokertest.Eventually(t, func() bool { return regexpMatch(`scheduled +1\nretries +2\n`, says("status")) }, "all are there")

	require.Regexp(t, `broker +\S+ \S+, virtual host `+v.Name+`\nleader +\S+, since \S+ \S+ \S+ \(\S+ ago\)\nsidecar +.+: leading\nviews +caught up, \S+s behind\n`+
		`scheduled +1\nretries +2\ndead +0\nrejected +0\nprocesses +0 run, 0 of 0 busy, 0 MB\nran +0 today, 0 failed; 0 in all, 0 failed\n\nSEVERITY .*\nwarning +no_workers +no live worker processes\n$`, says("status"))
	require.Regexp(t, `^SEVERITY .*\nwarning +no_workers +no live worker processes\n$`, says("attention"))
	require.Regexp(t, `JOBS .*\n2 +2 +0 +Mail +Timeout: no answer in <n> ms +fp-\w+ +r[01]\n2 jobs in 1 group\n`, says("errors"))
	require.Equal(t, "none\n", says("errors", "--set", "dead-jobs"))
	require.Regexp(t, `DUE FROM \(\S+\) +JOBS\n\S+ \S+ +1\n1 in all\n`, says("due"))
	require.Regexp(t, `DUE FROM \(\S+\) +JOBS\nlater +2\n2 in all\n`, says("due", "--set", "retries", "--to", fmt.Sprint(time.Now().Add(time.Minute).Unix()), "--step", "1m"))
	require.Regexp(t, `NAME .*\n`+v.Owner.Name+` +policymaker +look, act +`+v.Name+` +basic\n`, says("whoami"))

	require.Len(t, strings.Split(strings.TrimSpace(says("retries", "-o", "ndjson")), "\n"), 2)
	require.Regexp(t, `^jid,queue,class,.*\r\ns1,low,C,`, says("scheduled", "-o", "csv"))
	next := gjson.Get(says("retries", "--limit", "1", "-o", "json"), "next").String()
	require.Regexp(t, `JID .*\n.* r1 .*\n1 of 2\n`, says("retries", "--limit", "1", "--next", next))
	require.Regexp(t, `JID .*\n.* r1 .*\n1 of 1 that match, 2 in all\n`, says("retries", "--jid", "r1"))
	records, err := csv.NewReader(strings.NewReader(says("retries", "-o", "csv", "--limit", "1"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 2, "the titles and one retry")
	require.Len(t, strings.Split(strings.TrimSpace(says("retries", "-o", "ndjson", "-n", "1")), "\n"), 1)
	events := says("events", "--topics", "scheduled,retries", "--for", "2s")
	require.True(t, gjson.Valid(strings.Split(events, "\n")[0]), events)
	require.EqualValues(t, 2, gjson.Get(events, "retries.total").Int(), events)

	require.Regexp(t, `IS IN .*\nretries +\S+ \S+ +in \S+ +Mail +low +1 +Timeout: no answer in 30 ms\n`, says("job", "r0"))
	require.Equal(t, "job r0: deleted\n", says("job", "delete", "r0", "--reason", "a test", "--yes"))
	brokertest.Eventually(t, func() bool {
		return regexpMatch(`^in no list: deleted\n\nWHEN .*\n\S+ \S+ +deleted +retries +a test +`+v.Owner.Name+`\n`, says("job", "r0"))
	}, "it shows who did it")
	require.Contains(t, says("job", "delete", "r0", "--yes"), "job r0: no entry has this jid now")
	require.Contains(t, says("job", "never"), "job never: job not found")

	require.Regexp(t, `^deploy "v1.2" marked at \S+ \S+ \S+\n$`, says("deploys", "mark", "v1.2"))
	brokertest.Eventually(t, func() bool { return regexpMatch(`AT .*\n\S+ \S+ +v1.2 +`+v.Owner.Name+`\n1 in all\n`, says("deploys")) }, "it is marked")

	r := millrace(t, "release", "--reason", "all is well", "--api-url", fmt.Sprintf("http://%s:%s@%s", admin.Name, admin.Password, strings.TrimPrefix(s.api.Address(), "http://")))
	require.Equal(t, "no jobs are held\n", r.out, r.err)
	require.Contains(t, millrace(t, "status", "--api-url", "http://"+admin.Name+":wrong@"+strings.TrimPrefix(s.api.Address(), "http://")).err, `as user "`+admin.Name+`" of --api-url`)

	r = millrace(t, append([]string{"health"}, s.flags...)...)
	require.Equal(t, cli.ExitFailed, r.code)
	require.Empty(t, r.err)
	require.Regexp(t, `CHECK .*\nalarms +ok.*\nbroker-connection +ok.*\nviews-caught-up +ok.*\nleader +ok.*\nworkers +failed +no live worker processes\n`, r.out)
	r = millrace(t, append([]string{"health", "leader"}, s.flags...)...)
	require.Zero(t, r.code, r.out)
	require.Contains(t, says("health", "-o", "json"), `"leader": {`)
	require.Equal(t, cli.ExitUsage, millrace(t, "health", "luck").code)

	v.Publish(t, "", wire.Heartbeats, amqp.Publishing{Body: []byte(`{"identity":"h:1:x","beat":1,"hostname":"h","pid":1}`)})
	brokertest.Eventually(t, func() bool { return says("attention") == "none\n" }, "a worker is connected")
	require.Contains(t, says("status"), "\n\nnothing needs attention\n")
}

// Each command that only reads is accepted by a real sidecar, in each form of output.
func TestReadCommandsAreAccepted(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	schedule(t, v, time.Hour, "s1")
	for _, command := range []string{
		"status", "attention", "metrics", "metrics --step 1m", "journal", "scheduled", "retries", "gated", "dead", "jobs", "errors", "due",
		"operations", "rejected", "queues", "processes", "deploys", "whoami",
	} {
		for _, form := range []string{"table", "wide", "json", "yaml", "csv", "ndjson"} {
			r := millrace(t, append(append(strings.Fields(command), "-o", form), s.flags...)...)
			require.Zero(t, r.code, "%s -o %s: %s", command, form, r.err)
		}
	}
	require.Regexp(t, `^millrace \S+, RabbitMQ \S+`, millrace(t, append([]string{"top", "-n", "1"}, s.flags...)...).out)
}

func TestCommandsAreDocumented(t *testing.T) {
	var root commands
	parser, err := program().Parser(&root, io.Discard, io.Discard)
	require.NoError(t, err)
	var commands, documented []string
	for _, node := range help.Shown(parser.Model.Node) {
		commands = append(commands, node.Name)
	}
	_, table, found := strings.Cut(deployed(t, "docs/commands.md"), "\n## Commands\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (`millrace [^|]*) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`millrace ([a-z]+)").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, name[1])
		}
	}
	require.ElementsMatch(t, commands, documented)
}

func TestHealthChecksMatchContract(t *testing.T) {
	names := regexp.MustCompile(`name: check, .*enum: \[(.*)\]`).FindStringSubmatch(deployed(t, "httpapi/openapi.yaml"))
	require.NotNil(t, names)
	require.Equal(t, strings.Split(names[1], ", "), apiclient.Checks)
}

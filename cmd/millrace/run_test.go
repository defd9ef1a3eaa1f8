package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/wire"
)

// take waits for a message of a queue, and for the queue.
func take(t *testing.T, v *brokertest.Vhost, queue string) amqp.Delivery {
	t.Helper()
	var taken amqp.Delivery
	brokertest.Eventually(t, func() bool {
		if v.Try(t.Context(), http.MethodGet, "/api/queues/"+v.Name+"/"+queue, nil, nil) != nil {
			return false // it does not exist yet
		}
		d, ok := v.Get(t, queue)
		taken = d
		return ok
	}, "a job arrives in %s", queue)
	return taken
}

func TestScheduledJobArrives(t *testing.T) {
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)

	begun := time.Now()
	r := millrace(t, "schedule", "Mail", `["ann", 9007199254740993]`, "--queue", "mail", "--in", "1s", "--amqp-url", v.AMQPURL())
	require.Zero(t, r.code, r.err)
	d := take(t, v, "queue.mail")

	require.GreaterOrEqual(t, time.Since(begun), time.Second)
	require.Equal(t, strings.TrimSpace(r.out), gjson.GetBytes(d.Body, "jid").String())
	require.Equal(t, `["ann",9007199254740993]`, gjson.GetBytes(d.Body, "args").Raw)
	require.Equal(t, "millrace", d.AppId)
}

func TestJobArrivesInUndeclaredQueue(t *testing.T) {
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	brokertest.Eventually(t, func() bool {
		return millrace(t, "enqueue", "Mail", "--queue", "mail", "--priority", "7", "--amqp-url", v.AMQPURL()).code == 0
	}, "the policy for unrouted jobs holds")
	require.Equal(t, uint8(7), take(t, v, "queue.mail").Priority)
}

func TestListsAndActionsOfSidecar(t *testing.T) {
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	command := func(line ...string) result { return millrace(t, append(line, s.flags...)...) }
	jid := map[string]string{}
	for _, class := range []string{"Trigger", "Kill", "Delete"} {
		r := millrace(t, "schedule", class, "--in", "1h", "--amqp-url", v.AMQPURL())
		require.Zero(t, r.code, r.err)
		jid[class] = strings.TrimSpace(r.out)
	}
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(command("scheduled").out, "3 in all\n") }, "all are listed")
	require.Contains(t, command("scheduled", "--class", "Kill").out, jid["Kill"])
	require.Equal(t, jid["Kill"], gjson.Get(command("scheduled", "show", jid["Kill"], "-o", "json").out, "job.jid").String())

	require.Equal(t, "scheduled job "+jid["Trigger"]+": sent to its queue\n", command("scheduled", "trigger", jid["Trigger"]).out)
	require.Equal(t, "scheduled job "+jid["Kill"]+": moved to the dead jobs\n", command("scheduled", "kill", jid["Kill"], "--yes").out)
	require.Equal(t, "scheduled job "+jid["Delete"]+": deleted\n", command("scheduled", "delete", jid["Delete"], "--reason", "test", "--yes").out)
	require.Equal(t, jid["Trigger"], gjson.GetBytes(take(t, v, "queue.default").Body, "jid").String())

	brokertest.Eventually(t, func() bool { return strings.Contains(command("dead").out, jid["Kill"]) }, "it is among the dead")
	require.Zero(t, command("dead", "retry", jid["Kill"]).code)
	require.Equal(t, jid["Kill"], gjson.GetBytes(take(t, v, "queue.default").Body, "jid").String())
	brokertest.Eventually(t, func() bool { return command("scheduled").out == "none\n" }, "nothing is left")

	gone := command("scheduled", "delete", jid["Delete"], "--yes")
	require.Equal(t, cli.ExitFailed, gone.code)
	require.Contains(t, gone.err, "was deleted")
}

// Jobs that wait for a queue that another connection owns exclusively are listed, and can be
// changed one by one and in bulk.
func TestGatedJobs(t *testing.T) {
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	_, err := v.Channel(t).QueueDeclare(wire.QueuePrefix+"taken", false, false, true, false, nil)
	require.NoError(t, err)
	command := func(line ...string) result { return millrace(t, append(line, s.flags...)...) }
	jid := map[string]string{}
	for _, class := range []string{"Kill", "Delete", "Bulk", "Bulk2"} {
		r := millrace(t, "enqueue", class, `["ann"]`, "--queue", "taken", "--amqp-url", v.AMQPURL())
		require.Zero(t, r.code, r.err)
		jid[class] = strings.TrimSpace(r.out)
	}
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(command("gated").out, "4 in all\n") }, "all are listed")
	require.Regexp(t, `^SINCE \(\S+\) +JID +CLASS +QUEUE +ARGS *\n\S+ \S+ .*`+jid["Kill"]+` +Kill +taken +\["ann"\]\n1 of 1 that match, 4 in all\n$`,
		command("gated", "--class", "Kill").out)
	require.Equal(t, jid["Kill"], gjson.Get(command("gated", "show", jid["Kill"], "-o", "json").out, "jid").String())

	r := command("gated", "change", jid["Kill"], "--args", "[2]")
	require.Equal(t, "gated job "+jid["Kill"]+": changed\n", r.out, r.err)
	require.Contains(t, command("gated", "change", jid["Kill"], "--at", "2000000000").err, "has no time")
	require.Equal(t, "gated job "+jid["Kill"]+": moved to the dead jobs\n", command("gated", "kill", jid["Kill"], "--yes").out)
	require.Equal(t, "gated job "+jid["Delete"]+": deleted\n", command("gated", "delete", jid["Delete"], "--yes").out)
	require.Equal(t, "gated job "+jid["Delete"]+": restored\n", command("gated", "undo", jid["Delete"]).out)
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(command("gated").out, "3 in all\n") }, "one was killed, one restored")

	r = command("operations", "begin", "delete", "gated-jobs", "--queue", "taken", "--yes")
	require.Regexp(t, `^operation \S+ begun on 3 gated jobs;`, r.out, r.err)
	brokertest.Eventually(t, func() bool { return command("gated").out == "none\n" }, "all are deleted")
	require.Contains(t, command("operations", "begin", "trigger", "gated-jobs", "--yes").err, "action trigger needs")
}

func TestRejectedRecordIsResubmitted(t *testing.T) {
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	v.Publish(t, "", wire.Retries, amqp.Publishing{Body: []byte("{\"no\": \"retry\"}")})
	command := func(line ...string) result { return millrace(t, append(line, s.flags...)...) }
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(command("rejected").out, "1 in all\n") }, "it is listed")
	offset := gjson.Get(command("rejected", "-o", "json").out, "items.0.offset").String()
	require.Equal(t, "{\"no\": \"retry\"}", command("rejected", "show", wire.Retries, offset, "--raw").out)

	fixed := clitest.File(t, `{"type":"retry","jid":"a","retry_at":4000000000,"retry_count":1,"job":{"jid":"a","class":"Mail","queue":"default"}}`)
	r := command("rejected", "resubmit", wire.Retries, offset, fixed)
	require.Zero(t, r.code, r.err)
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(command("retries").out, "1 in all\n") }, "it is a retry now")
	brokertest.Eventually(t, func() bool { return command("rejected").out == "none\n" }, "the other is off the list")
}

func TestBrokerThatStartsLater(t *testing.T) {
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	proxy.Cut(t)
	settings := beside(v)
	settings.AMQPURL = proxy.URL()
	s := start(t, settings)

	brokertest.Eventually(t, func() bool { return strings.Contains(s.log.String(), "the broker cannot be reached") }, "the log says so")
	require.Equal(t, http.StatusOK, s.status(t, "/healthz"))
	require.Equal(t, http.StatusServiceUnavailable, s.status(t, "/readyz"))
	require.Equal(t, cli.ExitFailed, millrace(t, append([]string{"dead", "retry", "a"}, s.flags...)...).code)
	probe := func(name string) result { return millrace(t, append([]string{"health", name}, s.flags[:2]...)...) }
	require.Equal(t, result{0, "live\n", ""}, probe("live"))
	require.Equal(t, result{cli.ExitFailed, "not ready: the broker is not connected\n", ""}, probe("ready"))

	proxy.Heal(t)
	s.ready(t)
	require.Equal(t, result{0, "ready\n", ""}, probe("ready"), "no password is needed")
	s.leads(t)
}

// A sidecar on an empty broker is ready when a job that a client publishes is accepted, not before.
func TestReadyWhenJobsAreAccepted(t *testing.T) {
	v := brokertest.New(t)
	owner := v.Dial(t)
	ch, err := owner.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare(wire.LeaderInbox, false, false, true, false, nil) // no other sidecar can lead
	require.NoError(t, err)
	s := start(t, beside(v))
	reason := func() string {
		resp, err := s.api.HTTP.Get(s.api.Address() + "/readyz")
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	brokertest.Eventually(t, func() bool { return strings.Contains(reason(), "no leader has made jobs.direct") }, "it says what it waits for")
	require.NoError(t, owner.Close())
	s.ready(t)
	v.Publish(t, wire.ExchangeDirect, "mail", amqp.Publishing{Body: []byte(`{"class":"C","jid":"first"}`)})
	take(t, v, "queue.mail")
	brokertest.Eventually(t, func() bool { return reason() == `{"status":"ok"}`+"\n" }, "nothing is degraded")
}

// A sidecar that is configured for quorum queues ends on a broker whose quorum queues have no
// priorities, and names the remedy.
func TestUnsupportedQueueType(t *testing.T) {
	v := brokertest.New(t)
	r := func() error {
		settings := beside(v)
		settings.QueueType, settings.HTTPAddr = "quorum", "127.0.0.1:0"
		require.NoError(t, settings.AfterApply())
		listener, err := listen(t.Context(), settings.HTTPAddr, settings.exposure())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if v.Features(t).QuorumPriorities {
			cancel() // it is not refused
		}
		return serve(ctx, settings, newLog(io.Discard, "info", "text"), listener)
	}
	if v.Features(t).QuorumPriorities {
		require.NoError(t, r())
		return
	}
	require.ErrorContains(t, r(), "--queue-type: "+v.Features(t).Product)
	require.ErrorContains(t, r(), "use --queue-type auto or classic")
}

func TestSidecarStopsWhileWaitingForBroker(t *testing.T) {
	s := start(t, sidecarSettings{Broker: flags.Broker{AMQP: flags.AMQP{AMQPURL: "amqp://127.0.0.1:1"}}})
	brokertest.Eventually(t, func() bool { return strings.Contains(s.log.String(), "the broker cannot be reached") }, "it tries")
	require.NoError(t, s.end())
}

func TestSidecarStopsQuicklyAndResumes(t *testing.T) {
	v := brokertest.New(t)
	settings := beside(v)
	settings.StateDir = t.TempDir()
	s := start(t, settings)
	s.leads(t)
	require.Zero(t, millrace(t, "schedule", "Mail", "--in", "1h", "--amqp-url", v.AMQPURL()).code)
	brokertest.Eventually(t, func() bool {
		return strings.HasSuffix(millrace(t, append([]string{"scheduled"}, s.flags...)...).out, "1 in all\n")
	}, "it is listed")
	require.NoError(t, s.end())

	again := start(t, settings)
	again.leads(t)
	require.Contains(t, millrace(t, append([]string{"scheduled"}, again.flags...)...).out, "1 in all")
}

func TestStateDirectoryIsLocked(t *testing.T) {
	settings := sidecarSettings{Broker: flags.Broker{AMQP: flags.AMQP{AMQPURL: "amqp://127.0.0.1:1"}}, StateDir: t.TempDir()}
	s := start(t, settings)
	brokertest.Eventually(t, func() bool { return s.status(t, "/healthz") == http.StatusOK }, "it runs")
	second := clitest.Process(t, "serve", "--state-dir", settings.StateDir, "--http-addr", "127.0.0.1:0") // Pebble leaks a goroutine if it cannot open
	said, err := second.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, cli.ExitFailed, second.ProcessState.ExitCode())
	require.Contains(t, string(said), "cannot open the state directory "+filepath.Join(settings.StateDir, "view")+": it is in use by another process")
}

func TestUnusableStateDirectory(t *testing.T) {
	path := clitest.File(t, "")
	r := millrace(t, "serve", "--state-dir", path, "--http-addr", "127.0.0.1:0")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Equal(t, "millrace: view: cannot open the state directory "+filepath.Join(path, "view")+": mkdir "+path+
		": not a directory; set --state-dir to a directory\n", r.err)
}

func TestListensOnlyOnLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "example.com:0"} {
		r := millrace(t, "serve", "--http-addr", addr)
		require.Equal(t, cli.ExitUsage, r.code, addr)
		require.Equal(t, "millrace: --http-addr: refusing to listen on "+addr+" (not a loopback address) without TLS: set --tls-cert and --tls-key, "+
			"or --behind-proxy if a proxy terminates TLS; or listen on 127.0.0.1\n", r.err)
	}
	for _, addr := range []string{"127.0.0.1", "127.0.0.1:nonsense"} {
		r := millrace(t, "serve", "--http-addr", addr)
		require.Equal(t, cli.ExitUsage, r.code, addr)
		require.Contains(t, r.err, "--http-addr", addr)
	}
}

func TestAddressInUse(t *testing.T) {
	taken, err := listen(t.Context(), "127.0.0.1:0", auth.Exposure{})
	require.NoError(t, err)
	defer taken.Close()
	r := millrace(t, "serve", "--http-addr", taken.Addr().String())
	require.Equal(t, cli.ExitFailed, r.code)
	require.Equal(t, "millrace: --http-addr: "+taken.Addr().String()+" is in use, perhaps by another sidecar: choose another one\n", r.err)
}

func TestServeUntilInterrupted(t *testing.T) {
	v := brokertest.New(t)
	config := clitest.File(t, "amqp-url: "+v.AMQPURL()+"\nmanagement-url: "+v.ManagementURL()+"\nhttp-addr: 127.0.0.1:0\nlog-format: json\n")
	require.NoError(t, os.Chmod(config, 0o600))
	ctx, interrupt := contextOf(t)
	var out, log clitest.Buffer
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, []string{"serve", "--config", config}, &out, &log) }()
	brokertest.Eventually(t, func() bool { return strings.Contains(log.String(), `"scheduler: elected"`) }, "it leads")
	interrupt()
	require.Zero(t, <-ended)
	require.NotContains(t, log.String(), v.Owner.Password)
	require.Contains(t, log.String(), `"msg":"millrace: stopped"`)
	require.NotContains(t, log.String(), `"error":null`)
	require.Empty(t, out.String())
}

func TestWithoutManagementAPI(t *testing.T) {
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.ManagementURL())
	proxy.Cut(t)
	settings := beside(v)
	settings.ManagementURL, settings.StreamURL, settings.Auth = proxy.URL(), "", "none"
	managementTimeout, managementEvery = 100*time.Millisecond, 100*time.Millisecond
	t.Cleanup(func() { managementTimeout, managementEvery = 5*time.Second, time.Minute })
	s := start(t, settings)
	s.leads(t)
	require.Contains(t, s.log.String(), "no management API")
	require.Contains(t, s.log.String(), "protocol=amqp")

	r := millrace(t, "enqueue", "Mail", "--queue", "nobodys", "--amqp-url", v.AMQPURL())
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "there is no queue.nobodys, and no policy on jobs.direct")

	proxy.Heal(t)
	brokertest.Eventually(t, func() bool { return strings.Contains(s.log.String(), "the management API answers now") }, "it is found")
	brokertest.Eventually(t, func() bool {
		return millrace(t, "enqueue", "Mail", "--queue", "nobodys", "--amqp-url", v.AMQPURL()).code == 0
	}, "the policies are set")
}

// The log names the command that gives the user its tags, before it names what does not work
// without them.
func TestUserWithoutManagementTag(t *testing.T) {
	v := brokertest.New(t)
	untagged := v.AddUser(t, "untagged", brokertest.Permissions{Configure: connect.Sidecar.Configure, Write: connect.Sidecar.Write, Read: connect.Sidecar.Read})
	settings := beside(v)
	settings.AMQPURL, settings.ManagementURL, settings.StreamURL, settings.Auth = untagged.AMQPURL(), untagged.ManagementURL(), "", "none"
	s := start(t, settings)
	s.leads(t)
	require.Regexp(t, `level=WARN msg="millrace: the management API refuses the user: give it the tags that it needs with rabbitmqctl set_user_tags '`+untagged.Name+
		`' policymaker monitoring [^"]* Until then jobs that workers reject`, s.log.String())
	require.NotContains(t, s.log.String(), "--management-url says where it is", "it has been found")
}

func TestLeastPermissionsSuffice(t *testing.T) {
	v := brokertest.New(t)
	allow := func(r connect.Role, tags string) *brokertest.User {
		return v.AddUser(t, r.Name, brokertest.Permissions{Configure: r.Configure, Write: r.Write, Read: r.Read, Tags: tags})
	}
	sidecar, producer, worker := allow(connect.Roles[0], "policymaker,monitoring"), allow(connect.Roles[1], ""), allow(connect.Roles[2], "")
	settings := beside(v)
	settings.AMQPURL, settings.ManagementURL, settings.StreamURL = sidecar.AMQPURL(), sidecar.ManagementURL(), ""
	s := start(t, settings)
	s.leads(t)
	brokertest.Eventually(t, func() bool {
		return millrace(t, "enqueue", "ImportUsers", "--retry", "0", "--queue", "low", "--amqp-url", producer.AMQPURL()).code == 0
	}, "a producer may enqueue")
	require.Zero(t, millrace(t, "schedule", "SendEmail", "--in", "1s", "--queue", "low", "--amqp-url", producer.AMQPURL()).code)

	require.NoError(t, worker.Dial(t).Close())
	ch, err := worker.Dial(t).Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("queue.low", true, false, false, false, amqp.Table{"x-max-priority": 10})
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("queue.low", "low", wire.ExchangeDirect, false, nil))
	private, err := ch.QueueDeclare("", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind(private.Name, "", wire.Control, false, nil))
	jobs, err := ch.Consume("queue.low", "", false, false, false, false, nil)
	require.NoError(t, err)
	classes := map[string]bool{}
	for range 2 {
		d := receive(t, jobs)
		classes[d.Type] = true
		require.NoError(t, d.Reject(false))
	}
	require.Equal(t, map[string]bool{"ImportUsers": true, "SendEmail": true}, classes)
	require.NoError(t, ch.Publish("", wire.Retries, false, false, amqp.Publishing{Body: []byte("{}")}))

	command := func(line ...string) string { return millrace(t, append(line, s.flags...)...).out }
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(command("dead"), "2 in all\n") }, "what a worker rejects is among the dead")
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(command("rejected"), "1 in all\n") }, "a worker may publish to streams")
}

func receive(t *testing.T, deliveries <-chan amqp.Delivery) amqp.Delivery {
	t.Helper()
	select {
	case d := <-deliveries:
		return d
	case <-time.After(20 * time.Second):
		t.Fatal("no job comes")
		return amqp.Delivery{}
	}
}

func TestSidecarSurvivesBrokerRestart(t *testing.T) {
	v := brokertest.Own(t)
	s := start(t, beside(v))
	s.leads(t)
	s.ready(t)
	require.Zero(t, millrace(t, "schedule", "Mail", "--in", "2s", "--queue", "mail", "--amqp-url", v.AMQPURL()).code)
	v.Sync(t)
	v.Kill(t)
	brokertest.Eventually(t, func() bool { return s.status(t, "/readyz") == http.StatusServiceUnavailable }, "it is not ready")
	require.Equal(t, http.StatusOK, s.status(t, "/healthz"))
	v.Restart(t)
	s.ready(t)
	take(t, v, "queue.mail")
}

func TestLargeRecordIsReadFromStream(t *testing.T) {
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	large := `["` + strings.Repeat("x", 100_000) + `"]`
	r := millrace(t, "schedule", "Mail", large, "--in", "1h", "--amqp-url", v.AMQPURL())
	require.Zero(t, r.code, r.err)
	brokertest.Eventually(t, func() bool {
		shown := millrace(t, append([]string{"scheduled", "show", strings.TrimSpace(r.out), "-o", "json"}, s.flags...)...)
		return len(gjson.Get(shown.out, "job.args.0").String()) == 100_000
	}, "it is shown whole")
}

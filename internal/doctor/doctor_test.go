package doctor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// result is what an examination printed.
type result struct {
	failed bool
	out    string
}

const nowhere = "127.0.0.1:1"

// examine prints the findings about a broker, and the sidecar at an address, in a form.
func examine(t *testing.T, b connect.Broker, form, addr string, permissions bool) result {
	t.Helper()
	return examineFor(t, nil, b, form, addr, permissions)
}

// examineFor is examine for a sidecar that delivers messages.
func examineFor(t *testing.T, deliverTo *regexp.Regexp, b connect.Broker, form, addr string, permissions bool) result {
	t.Helper()
	var out bytes.Buffer
	b.Hosts, b.Log = &hosts.Order{}, slog.New(slog.DiscardHandler)
	cfg := Config{Broker: b, DeliverTo: deliverTo, API: apiclient.New(apiclient.Address{Base: "http://" + addr}, apiclient.Credentials{}, nil)}
	p := (&output.Result{Output: form}).Printer(output.Streams{Out: &out})
	err := Run(t.Context(), cfg, p, permissions)
	if err != nil {
		require.ErrorIs(t, err, output.ErrReported)
	}
	return result{err != nil, out.String()}
}

// doctor examines the broker as a user, without a sidecar.
func doctor(t *testing.T, u *brokertest.User) result {
	t.Helper()
	return examine(t, connect.Broker{AMQPURL: u.AMQPURL(), ManagementURL: u.ManagementURL()}, "table", nowhere, false)
}

func TestDoctorCannotReachBroker(t *testing.T) {
	v := brokertest.New(t)
	u, err := url.Parse(v.AMQPURL())
	require.NoError(t, err)
	management, err := url.Parse(v.ManagementURL())
	require.NoError(t, err)
	for name, test := range map[string]struct{ url, remedy string }{
		"no broker there": {"amqp://127.0.0.1:1", "start the broker, or say where it is"},
		"an HTTP port":    {"amqp://" + management.Host, "HTTP"},
		"wrong password":  {"amqp://" + v.Owner.Name + ":wrong@" + u.Host + u.Path, "check user and password"},
		"no vhost":        {"amqp://" + u.User.String() + "@" + u.Host + "/nowhere", "rabbitmqctl add_vhost 'nowhere'"},
	} {
		t.Run(name, func(t *testing.T) {
			r := examine(t, connect.Broker{AMQPURL: test.url}, "table", nowhere, false)
			require.True(t, r.failed)
			require.Contains(t, r.out, "FAIL  broker")
			require.Contains(t, r.out, test.remedy)
			require.NotContains(t, r.out, "Permissions that each needs", "permissions are not the fault")
			require.Regexp(t, `(?s)Permissions that each needs.*sidecar \(.*\n    configure .*producer \(.*worker \(`,
				examine(t, connect.Broker{AMQPURL: test.url}, "table", nowhere, true).out)
			var findings []struct{ Status, Text, Remedy string }
			require.NoError(t, json.Unmarshal([]byte(examine(t, connect.Broker{AMQPURL: test.url}, "json", nowhere, false).out), &findings))
			require.Equal(t, "FAIL", findings[0].Status)
			require.Contains(t, findings[0].Text+findings[0].Remedy, test.remedy)
		})
	}
}

func TestDoctorListsMissingPermissions(t *testing.T) {
	v := brokertest.New(t)
	weak := v.AddUser(t, "weak", brokertest.Permissions{Configure: `^queue\.`, Write: `^jobs\.`, Tags: "administrator"})
	r := doctor(t, weak)
	require.True(t, r.failed)
	require.Regexp(t, `FAIL  permissions     user `+weak.Name+` may not configure jobs.direct, .*write `+cmp.Or(v.Features(t).DefaultExchange, "the default exchange"), r.out)
	require.Contains(t, r.out, v.Features(t).Ctl+" set_permissions --vhost '"+v.Name+"' '"+weak.Name+"' '"+connect.Sidecar.Configure+"'")
	require.Contains(t, r.out, "Permissions that each needs", "permissions are the fault")
}

func TestDoctorWithoutManagementTag(t *testing.T) {
	v := brokertest.New(t)
	monitor := v.AddUser(t, "monitor", brokertest.Permissions{Tags: "monitoring"})
	r := doctor(t, monitor)
	require.True(t, r.failed)
	require.Regexp(t, `(?s)FAIL  policies .*may not set them.*→ .*`+v.Features(t).Ctl+` set_policy`, r.out)

	r = doctor(t, v.Owner)
	require.False(t, r.failed, r.out)
	require.Contains(t, r.out, "note  permissions     only an administrator may list those of others (millrace doctor --permissions lists what each needs)")
	require.NotContains(t, r.out, "Permissions that each needs", "none is missing")
	require.Contains(t, r.out, "ok    permissions     user "+v.Owner.Name+" may do all that a sidecar does")
	if v.Features(t).QuorumQueues {
		require.Regexp(t, `note  queue types     only an administrator may ask`, r.out)
	}
	require.NotRegexp(t, `\b401\b`, r.out)

	tagless := v.AddUser(t, "tagless", brokertest.Permissions{})
	r = doctor(t, tagless)
	require.True(t, r.failed)
	require.Regexp(t, `(?s)FAIL  management API .*set_user_tags '`+tagless.Name+`' policymaker monitoring`, r.out)
	require.NotContains(t, r.out, "enable rabbitmq_stream", "it may be enabled")
}

func TestDoctorWithoutManagementAPI(t *testing.T) {
	v := brokertest.New(t)
	r := examine(t, connect.Broker{AMQPURL: v.AMQPURL(), ManagementURL: "http://127.0.0.1:1"}, "table", nowhere, false)
	require.False(t, r.failed, "it may be intended: %s", r.out)
	require.Regexp(t, `(?s)note  management API  does not answer.*`+v.Features(t).Ctl+` set_policy`, r.out)
	require.Equal(t, v.Features(t).Plugins, strings.Contains(r.out, "rabbitmq-plugins enable rabbitmq_management"))
	require.Equal(t, v.Features(t).NativeStreamProtocol, strings.Contains(r.out, "note  streams         are read over AMQP 0-9-1: slower"))
	require.Contains(t, r.out, "note  latency         not measured")
	require.Contains(t, r.out, "note  sidecar         no sidecar answers")
}

func TestDoctorChecksQueues(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	declare := func(name string, args amqp.Table) {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		require.NoError(t, err)
	}
	declare("queue.plain", nil)
	declare("queue.drops", amqp.Table{"x-max-priority": 10, "x-max-length": 10})
	declare("queue.refuses", amqp.Table{"x-max-priority": 10, "x-max-length": 10, "x-overflow": "reject-publish"})
	declare("queue.elsewhere", amqp.Table{"x-max-priority": 10, "x-dead-letter-exchange": "mine"})
	declare("other", nil)
	declare(wire.Unrouted, nil)
	v.Publish(t, "", wire.Unrouted, amqp.Publishing{Body: []byte("{}")})
	v.Do(t, http.MethodPut, "/api/policies/"+v.Name+"/theirs", map[string]any{
		"pattern": `^queue\.plain$`, "priority": 1, "definition": map[string]any{"max-length": 7}, "apply-to": "queues",
	}, nil)

	var r result
	brokertest.Eventually(t, func() bool {
		r = doctor(t, v.Owner)
		return r.failed && strings.Contains(r.out, "1 job")
	}, "the broker's statistics show the policy, and the job")
	for _, line := range []string{
		`FAIL  policy theirs   wins over millrace-queues for queue.plain: jobs that their workers reject are lost`,
		`note  queue.plain     has no priorities`,
		`note  queue.plain     has a length limit beyond which it drops`,
		`note  queue.drops     has a length limit beyond which it drops`,
		`note  queue.elsewhere what workers reject goes to mine`,
		`note  jobs.unrouted   left by an older version: 1 job`,
	} {
		require.Contains(t, r.out, line)
	}
	require.NotContains(t, r.out, "queue.refuses")
	require.NotContains(t, r.out, " other ")
}

func TestDoctorDetectsClientsThatShareUser(t *testing.T) {
	v := brokertest.New(t)
	v.Dial(t)
	brokertest.Eventually(t, func() bool {
		return doctor(t, v.Owner).out != "" && matches(`note  user            1 connection beside Millrace as `+v.Owner.Name, doctor(t, v.Owner).out)
	}, "the broker's statistics show the connection")
}

// withSidecar examines the broker and an API that answers for a sidecar.
func withSidecar(t *testing.T, v *brokertest.Vhost, a *clitest.API) result {
	t.Helper()
	return examine(t, connect.Broker{AMQPURL: v.AMQPURL(), ManagementURL: v.ManagementURL()}, "table", a.Addr(), false)
}

func TestDoctorReportsFaultsOfSidecar(t *testing.T) {
	v := brokertest.New(t)
	a := clitest.NewAPI(t, http.StatusOK, `{"vhost":"v","scheduler":{"phase":"waiting","gap":"it is new","orphaned":true,"orphan_cause":"a client has jobs.leader","orphan_remedy":"close it","blocked":"memory",
		"held":[{"queue":"mail","reason":"full"}]}}`)
	r := withSidecar(t, v, a)
	require.True(t, r.failed)
	require.Regexp(t, `FAIL  journal .*it is new\n +→ run the held jobs: millrace release \(as an administrator\)\n +→ or discard them: millrace release --discard\n`, r.out)
	require.Regexp(t, `FAIL  leader .*no sidecar leads.*: a client has jobs.leader\n +→ close it\n`, r.out)
	require.Regexp(t, `FAIL  leader .*memory`, r.out)
	require.Regexp(t, `FAIL  queue mail +takes no jobs: full`, r.out)

	broken := clitest.NewAPI(t, http.StatusOK, "<html>")
	require.Contains(t, withSidecar(t, v, broken).out, "note  sidecar         the sidecar's answer cannot be read")

	other := clitest.NewAPI(t, http.StatusForbidden, `{"error":"forbidden","reason":"user \"guest\" may not use this virtual host"}`)
	require.Contains(t, withSidecar(t, v, other).out, "may not use this virtual host (http://"+other.Addr()+": it may be the sidecar of another broker or virtual host)")
}

func TestDoctorDetectsAlarms(t *testing.T) {
	v := brokertest.OwnErlang(t)
	v.Eval(t, "rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}).")
	defer v.Eval(t, "rabbit_alarm:clear_alarm({resource_limit, memory, node()}).")
	brokertest.Eventually(t, func() bool {
		return matches(`FAIL  alarm           memory alarm on \S+: the broker may block publishers`, doctor(t, v.Owner).out)
	}, "the alarm is shown")
}

func TestSkew(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	require.Zero(t, skewOf(at(0.9), at(1.1), at(1)))
	require.Zero(t, skewOf(at(0.9), at(1.1), at(0)), "it may have been 0.99")
	require.Equal(t, 3*time.Second, skewOf(at(0.5), at(1), at(4)))
	require.Equal(t, -3*time.Second, skewOf(at(5), at(5.1), at(1)))
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

func TestMayLock(t *testing.T) {
	for _, r := range connect.Roles[1:] {
		require.False(t, mayLock(broker.Permission{Configure: r.Configure}), r.Name)
	}
	require.True(t, mayLock(broker.Permission{Configure: ".*"}))
}

func TestDoctorLooksAtPeriodicJobs(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	_, err := ch.QueueDeclare(wire.QueuePrefix+"reports", true, false, false, false, nil)
	require.NoError(t, err)
	a := clitest.NewAPI(t, http.StatusOK, `{"vhost":"jobs","scheduler":{"phase":"leading"}}`)
	look := func(jobs string) string {
		a.On("/api/periodic-jobs", jobs)
		return withSidecar(t, v, a).out
	}
	require.NotContains(t, look(`[]`), "periodic jobs")
	nightly := `{"name":"nightly","state":"active","queue":"reports"}`
	r := look(`[` + nightly + `,{"name":"poll","state":"active","queue":"default"},{"name":"off","state":"paused","queue":"none"},{"name":"part","state":"incomplete","problem":"it has no job"}]`)
	require.Regexp(t, `FAIL  periodic jobs   part has no ticks: it has no job\n +→ define it again, or delete it: millrace periodic delete part`, r)
	require.Regexp(t, `note  periodic jobs   no worker consumes the queue of nightly, poll\n +→ start one for: default, reports`, r)
	_, err = ch.Consume(wire.QueuePrefix+"reports", "", true, false, false, false, nil)
	require.NoError(t, err)
	brokertest.Eventually(t, func() bool {
		return strings.Contains(look(`[`+nightly+`]`), "ok    periodic jobs   1 periodic job: all have ticks, and workers for their queues")
	}, "a worker consumes it")
}

func TestDoctorReportsGovernedQueuesThatAreBypassed(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDirect, "direct", true, false, false, false, nil))
	for queue, args := range map[string]amqp.Table{"queue.mails": {"x-max-length": 5}, wire.Gated: {"x-queue-type": "stream"}} {
		_, err := ch.QueueDeclare(queue, true, false, false, false, args)
		require.NoError(t, err)
	}
	a := clitest.NewAPI(t, http.StatusOK, `{"vhost":"jobs","scheduler":{"phase":"leading"}}`)
	a.On("/api/periodic-jobs", `[]`)
	a.On("/api/governed-queues", `[{"name":"mails","state":"governed"}]`)
	look := func() string { return withSidecar(t, v, a).out }
	brokertest.Eventually(t, func() bool { return strings.Contains(look(), "note  governed queues queue.mails has a length limit") }, "the limit is reported")
	require.NoError(t, ch.QueueBind("queue.mails", "mails", wire.ExchangeDirect, false, nil))
	require.NoError(t, ch.QueueBind(wire.Gated, "other", wire.ExchangeDirect, false, nil))
	out := look()
	require.Contains(t, out, "FAIL  governed queues queue.mails is bound to jobs.direct")
	require.Contains(t, out, "FAIL  governed queues jobs for other do not go to the queue, although it is not governed")
}

// Without an alternate exchange, jobs are lost while a queue is switched.
func TestDoctorTriesTheAlternateExchange(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDirect, "direct", true, false, false, false, nil))
	require.NoError(t, ch.ExchangeDeclare(wire.Unrouted, "fanout", true, false, false, false, nil))
	_, err := ch.QueueDeclare(wire.Gated, true, false, false, false, amqp.Table{"x-queue-type": "stream"})
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind(wire.Gated, "", wire.Unrouted, false, nil))
	a := clitest.NewAPI(t, http.StatusOK, `{"vhost":"jobs","scheduler":{"phase":"leading"}}`)
	a.On("/api/periodic-jobs", `[]`)
	a.On("/api/governed-queues", `[{"name":"mails","state":"governed"}]`)
	const lacks = "FAIL  governed queues jobs.direct has no alternate exchange"
	alone := func() string {
		return examine(t, connect.Broker{AMQPURL: v.AMQPURL(), ManagementURL: "http://127.0.0.1:1"}, "table", a.Addr(), false).out
	}
	require.Contains(t, alone(), lacks)
	require.Regexp(t, `→ set the policy:\n +→ rabbitmqctl set_policy .* 'millrace-direct' `, alone())
	a.On("/api/governed-queues", `[]`)
	require.NotContains(t, alone(), "governed queues", "it is not tried if nothing is governed")
	a.On("/api/governed-queues", `[{"name":"mails","state":"governed"}]`)
	brokertest.Eventually(t, func() bool {
		return strings.Contains(withSidecar(t, v, a).out, "ok    governed queues 1 queue: all get their jobs through Millrace")
	}, "the doctor has set the policy")
	require.NotContains(t, alone(), "governed queues")
}

// The list of queues may be long, and all checks share it.
func TestDoctorSharesListOfQueues(t *testing.T) {
	v := brokertest.New(t)
	require.NoError(t, v.Channel(t).ExchangeDeclare(wire.ExchangeDirect, "direct", true, false, false, false, nil))
	_, err := v.Channel(t).QueueDeclare("queue.mails", true, false, false, false, nil)
	require.NoError(t, err)
	a := clitest.NewAPI(t, http.StatusOK, `{"vhost":"jobs","scheduler":{"phase":"leading"}}`)
	a.On("/api/periodic-jobs", `[{"name":"nightly","state":"active","queue":"mails"}]`)
	a.On("/api/limits", `[{"name":"each","state":"active","definition":{"queues":["mails"],"concurrency":3}}]`)
	a.On("/api/governed-queues", `[{"name":"mails","state":"governed"}]`)
	target, err := url.Parse(v.ManagementURL())
	require.NoError(t, err)
	var asked atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if strings.HasPrefix(r.In.URL.Path, "/api/queues/") && strings.Count(r.In.URL.EscapedPath(), "/") == 3 {
			asked.Add(1)
		}
		r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
	}})
	defer proxy.Close()
	through := *target
	through.Host = strings.TrimPrefix(proxy.URL, "http://")
	out := examine(t, connect.Broker{AMQPURL: v.AMQPURL(), ManagementURL: through.String()}, "table", a.Addr(), false).out
	require.Contains(t, out, "no worker consumes the queue of nightly")
	require.EqualValues(t, 2, asked.Load(), "one more is for the policies")
}

func TestDoctorLooksAtLimits(t *testing.T) {
	v := brokertest.New(t)
	_, err := v.Channel(t).QueueDeclare(wire.QueuePrefix+"imports", true, false, false, false, nil)
	require.NoError(t, err)
	a := clitest.NewAPI(t, http.StatusOK, `{"vhost":"jobs","scheduler":{"phase":"leading"}}`)
	a.On("/api/job-metrics", `{"classes":[{"name":"Import"}]}`)
	a.On("/api/attention", `{"items":[]}`)
	look := func(limits string) string {
		a.On("/api/limits", limits)
		return withSidecar(t, v, a).out
	}
	require.NotContains(t, look(`[]`), "limits")
	fine := `{"name":"each","state":"active","definition":{"queues":["imports"],"classes":["Import"],"concurrency":3}}`
	require.Contains(t, look(`[`+fine+`]`), "ok    limits          1 limit: their queues and classes are known")
	r := look(`[` + fine + `,{"name":"typo","state":"active","definition":{"queues":["improts"],"classes":["Imprt"],"concurrency":3}},{"name":"part","state":"incomplete","problem":"it limits nothing","definition":{}}]`)
	require.Regexp(t, `FAIL  limits          part holds nothing back: it limits nothing\n +→ define it again, or delete it: millrace limits delete part`, r)
	require.Regexp(t, `note  limits          queue "improts" of limit typo does not exist\n +→ if no job is to come, correct the name`, r)
	require.Regexp(t, `note  limits          no job of class "Imprt" of limit typo has run in the last 30 days`, r)
	require.NotContains(t, r, "limit each")
	a.On("/api/job-metrics", `{"classes":[{"name":"","other":true}]}`)
	a.On("/api/attention", `{"items":[{"kind":"slots_freed","text":"3 slots were freed"}]}`)
	r = look(`[` + fine + `]`)
	require.Regexp(t, `note  limits          3 slots were freed\n +→ see which workers run these jobs, and let them report ends`, r)
	require.NotContains(t, r, "no job of class", "with too many classes not all are known")
}

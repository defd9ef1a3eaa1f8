package gotest

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// leads takes commands as a leader does. The replies are given in order; an empty one is no answer.
func leads(t *testing.T, v *brokertest.Vhost, replies ...string) (commands chan gjson.Result) {
	t.Helper()
	return answers(t, v, wire.LeaderInbox, replies)
}

// answers answers the messages of a queue in order, and returns them. It does not answer a message
// whose reply is empty.
func answers(t *testing.T, v *brokertest.Vhost, queue string, replies []string) (messages chan gjson.Result) {
	t.Helper()
	ch := v.Channel(t)
	_, err := ch.QueueDeclare(queue, true, true, false, false, nil)
	require.NoError(t, err)
	inbox, err := ch.Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	messages = make(chan gjson.Result, len(replies))
	go func() {
		for _, reply := range replies {
			d, open := <-inbox
			if !open {
				return
			}
			if messages <- gjson.ParseBytes(d.Body); reply != "" {
				_ = ch.Publish("", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: d.CorrelationId, Body: []byte(reply)})
			}
		}
	}()
	return messages
}

var nightly = PeriodicJob{
	Name: "nightly", Cron: "0 3 * * *", TZ: "Europe/Stockholm", Args: Args("Report", "daily", int64(1<<60)), Options: &EnqueueOptions{Queue: "reports", MaxAttempts: 3},
	Jitter: 1500 * time.Millisecond, ExpiresIn: time.Hour, Grace: new(time.Duration), CatchUp: CatchUpAll, CatchUpMax: 7, Overlap: OverlapSkip, Except: []string{"2026-12-24"}, Paused: true,
}

func TestPeriodicJobsAreDefined(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	commands := leads(t, v, `{"status":200,"defined":{"made":["nightly"],"changed":[],"forgotten":["old"],"unchanged":1}}`)
	did, err := client(t, v.AMQPURL()).Define(t.Context(), "billing", nightly, PeriodicJob{Name: "poll", Every: 90 * time.Second, Args: Args("Poll")})
	require.NoError(t, err)
	require.Equal(t, Defined{Made: []string{"nightly"}, Changed: []string{}, Forgotten: []string{"old"}, Unchanged: 1}, did)
	cmd := <-commands
	require.Equal(t, "define", cmd.Get("command").String())
	require.Len(t, cmd.Get("id").String(), 32)
	require.JSONEq(t, `{"source":"billing","periodic_jobs":[
		{"name":"nightly","cron":"0 3 * * *","tz":"Europe/Stockholm","job":{"class":"Report","args":["daily",1152921504606846976],"queue":"reports","retry":2},
		 "jitter":1.5,"expires_in":3600,"grace":0,"catch_up":"all","catch_up_max":7,"overlap":"skip","except":["2026-12-24"],"paused":true},
		{"name":"poll","every":90,"job":{"class":"Poll","args":[],"queue":"default"}}]}`, cmd.Get("definitions").Raw)
	require.Contains(t, cmd.Get("definitions").Raw, "1152921504606846976")
	_, err = wire.ParseCommand([]byte(cmd.Raw))
	require.NoError(t, err)
}

func TestLimitsAreDefined(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	commands := leads(t, v, `{"status":200,"defined":{"made":["each"],"changed":[],"forgotten":[],"unchanged":0}}`)
	each := Limit{Name: "each", Queues: []string{"imports"}, Classes: []string{"Import"}, Per: []Part{PerKey}, Concurrency: 3,
		Rate: &Rate{Jobs: 100, In: time.Minute, Burst: 5}, Overrides: map[string]Bound{"big": {Concurrency: 10}}, Paused: true}
	did, err := client(t, v.AMQPURL()).DefineLimits(t.Context(), "billing", each)
	require.NoError(t, err)
	require.Equal(t, []string{"each"}, did.Made)
	cmd := <-commands
	require.JSONEq(t, `{"source":"billing","limits":[{"name":"each","queues":["imports"],"classes":["Import"],"per":["key"],"concurrency":3,
		"rate":{"jobs":100,"seconds":60,"burst":5},"overrides":{"big":{"concurrency":10}},"paused":true}]}`, cmd.Get("definitions").Raw)
	_, err = wire.ParseCommand([]byte(cmd.Raw))
	require.NoError(t, err)
}

func TestGovernedQueuesAreDefined(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	answer := `{"status":200,"defined":{"made":["imports"],"changed":[],"forgotten":[],"unchanged":0}}`
	commands := leads(t, v, answer, answer)
	c := client(t, v.AMQPURL())
	imports := GovernedQueue{Name: "imports", Key: "args.0.customer_id", MaxWaiting: 100_000, Weights: map[string]int{"customer-42": 3}, Ahead: 20, Paused: true}
	did, err := c.DefineQueues(t.Context(), "billing", imports)
	require.NoError(t, err)
	require.Equal(t, []string{"imports"}, did.Made)
	cmd := <-commands
	require.JSONEq(t, `{"source":"billing","queues":[{"name":"imports","key":"args.0.customer_id","max_waiting":100000,
		"weights":{"customer-42":3},"ahead":20,"paused":true}]}`, cmd.Get("definitions").Raw)
	_, err = wire.ParseCommand([]byte(cmd.Raw))
	require.NoError(t, err)
	_, err = c.DefineQueues(t.Context(), "billing")
	require.NoError(t, err)
	require.JSONEq(t, `{"source":"billing","queues":[]}`, (<-commands).Get("definitions").Raw)
	_, err = c.DefineQueues(t.Context(), "billing", GovernedQueue{Name: "imports", Key: "args..0"})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "a path into the job")
}

func TestDefineSaysWhyNot(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	c := client(t, v.AMQPURL())
	leads(t, v, `{"status":400,"error":"bad_request","reason":"4 fields"}`, `{"status":409,"error":"conflict","reason":"source x"}`)
	_, err := c.Define(t.Context(), "a", nightly)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "4 fields")
	_, err = c.Define(t.Context(), "a", nightly)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "source x")
	for _, wrong := range []PeriodicJob{{Name: "a", Every: 1}, {Name: "a", Args: Args("")}, {Name: "a", Args: Args("C"), Options: &EnqueueOptions{JID: "j"}}, {Name: "a", Args: Args("C", func() {})}} {
		_, err = c.Define(t.Context(), "a", wrong)
		require.ErrorIs(t, err, ErrInvalid)
	}
	require.NoError(t, c.Close())
	_, err = c.Define(t.Context(), "a", nightly)
	require.ErrorIs(t, err, ErrClosed)
}

// A command that was not answered is sent again, and has the same id.
func TestDefineIsRepeatedUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	c := client(t, v.AMQPURL())
	did := make(chan error, 1)
	go func() {
		_, err := c.Define(t.Context(), "a", nightly)
		did <- err
	}()
	time.Sleep(300 * time.Millisecond) // no sidecar leads: the broker returns the command
	commands := leads(t, v, "", `{"status":503,"error":"service_unavailable","reason":"busy"}`, `{"status":204,"repeated":true}`)
	require.NoError(t, <-did)
	first := (<-commands).Get("id").String()
	for range 2 {
		require.Equal(t, first, (<-commands).Get("id").String())
	}
}

func TestDefineWithoutALeader(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := client(t, v.AMQPURL()).Define(ctx, "a", nightly)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "no sidecar leads")
	leads(t, v, "", "")
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = client(t, v.AMQPURL()).Define(ctx, "a", nightly)
	require.ErrorIs(t, err, ErrUnconfirmed)
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = client(t, "amqp://127.0.0.1:1").Define(ctx, "a", nightly)
	require.ErrorIs(t, err, ErrUnreachable)
}

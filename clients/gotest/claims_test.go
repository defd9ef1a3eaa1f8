package gotest

import (
	"log/slog"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/wire"
)

// inbox has the commands that come to a leader.
type inbox struct {
	ch       *amqp.Channel
	commands <-chan amqp.Delivery
}

func takesCommands(t *testing.T, v *brokertest.Vhost) *inbox {
	t.Helper()
	ch := v.Channel(t)
	_, err := ch.QueueDeclare(wire.LeaderInbox, true, true, false, false, nil)
	require.NoError(t, err)
	commands, err := ch.Consume(wire.LeaderInbox, "", true, false, false, false, nil)
	require.NoError(t, err)
	return &inbox{ch, commands}
}

// next waits for a command of a kind.
func (i *inbox) next(t *testing.T, kind string) amqp.Delivery {
	t.Helper()
	d := <-i.commands
	require.Equal(t, kind, gjson.GetBytes(d.Body, "command").String())
	return d
}

func (i *inbox) answer(d amqp.Delivery, reply string) {
	_ = i.ch.Publish("", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: d.CorrelationId, Body: []byte(reply)})
}

// Claims are asked on one channel. A late answer is not taken for that to a later claim.
func TestClaims(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	leader := takesCommands(t, v)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL()})
	w.Handle("Well", w.says(nil), nil)
	w.start(t)
	leader.answer(leader.next(t, "state"), stateReply)
	deliver := func(n int, text string) {
		v.Publish(t, wire.ExchangeDirect, "default", limited("Well", text, slotOf(n), amqp.Table{wire.HeaderClaim: "1"}))
	}
	deliver(1, "dropped")
	claim := leader.next(t, "claim")
	require.JSONEq(t, `{"command":"claim","slot":"`+slotOf(1)+`","process":"`+w.Identity()+`"}`, string(claim.Body))
	leader.answer(claim, dropReply)
	w.idle(t, v, "default")

	deliver(2, "runs")
	late := leader.next(t, "claim") // it is not answered in time
	again := leader.next(t, "claim")
	require.Equal(t, []string{claim.ReplyTo, claim.ReplyTo}, []string{late.ReplyTo, again.ReplyTo}, "one channel")
	leader.answer(late, dropReply)
	leader.answer(again, `{"status":503,"reason":"busy"}`)
	leader.answer(leader.next(t, "claim"), runReply)
	w.said.has(t, "runs")
	brokertest.Eventually(t, func() bool { return len(endsOf(t, v, w)) == 1 }, "it ends")
	w.idle(t, v, "default")
	require.Equal(t, []string{"runs"}, w.said.all())
	require.Equal(t, [][]string{{slotOf(2)}}, endsOf(t, v, w))
}

// Without a leader, claims are returned. The worker asks again until one leads, also after its
// connection was lost while it waited for an answer.
func TestClaimsWithoutAnswer(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	w := newTestWorker(t, WorkerConfig{URL: p.URL()})
	w.Handle("Well", w.says(nil), nil)
	v.Publish(t, wire.ExchangeDirect, "default", limited("Well", "well", slotOf(1), nil))
	w.start(t)
	brokertest.Eventually(t, func() bool { return consumers(t, v, "default") == 1 && w.busy(t, v) == 1 }, "it waits")
	leader := takesCommands(t, v)
	leader.next(t, "claim")
	p.Cut(t)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == 1 }, "the broker has it back")
	p.Heal(t)
	go func() {
		for d := range leader.commands {
			if gjson.GetBytes(d.Body, "command").String() == "claim" {
				leader.answer(d, runReply)
			}
		}
	}()
	w.said.has(t, "well")
	brokertest.Eventually(t, func() bool { return len(endsOf(t, v, w)) == 1 }, "it ends")
	w.idle(t, v, "default")
}

// LavinMQ refuses the leader's answers to a user that may not read them. The worker says so.
func TestClaimsWithoutPermission(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	leads(t, v, stateReply, runReply)
	u := v.AddUser(t, "worker", brokertest.Permissions{Configure: ".*", Write: ".*", Read: `^(queue\..*|amq\.gen.*|jobs\..*)$`})
	log := &lines{}
	w := newTestWorker(t, WorkerConfig{URL: u.AMQPURL(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	w.Handle("Well", w.says(nil), nil)
	v.Publish(t, wire.ExchangeDirect, "default", limited("Well", "well", slotOf(1), amqp.Table{wire.HeaderClaim: "1"}))
	w.start(t)
	brokertest.Eventually(t, func() bool { return len(w.said.all()) == 1 || strings.Contains(log.String(), "may not read answers") }, "it runs, or it is said why not")
}

// A worker with the permissions that the docs give it claims jobs.
func TestClaimsOfRestrictedUser(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	leads(t, v, stateReply, runReply)
	role := connect.Worker
	u := v.AddUser(t, "worker", brokertest.Permissions{Configure: role.Configure, Write: role.Write, Read: role.Read})
	w := newTestWorker(t, WorkerConfig{URL: u.AMQPURL()})
	w.Handle("Well", w.says(nil), nil)
	v.Publish(t, wire.ExchangeDirect, "default", limited("Well", "well", slotOf(1), amqp.Table{wire.HeaderClaim: "1"}))
	w.start(t)
	w.said.has(t, "well")
	w.idle(t, v, "default")
}

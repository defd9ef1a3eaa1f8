package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/sidekiq"
	"github.com/millrace-jobs/millrace/wire"
)

type bridgeCmd struct {
	Sidekiq sidekiqCmd `cmd:"" help:"Move jobs between Sidekiq's Redis and the broker, while the workers of both run."`
}

type sidekiqCmd struct {
	flags.AMQP  `group:"Connection flags:"`
	flags.Redis `group:"Connection flags:"`
	output.Result

	Queue     []string `name:"queue" placeholder:"NAME" help:"Take the jobs of this queue of Sidekiq; may be repeated. Default: all queues but those of --to-sidekiq."`
	ToSidekiq []string `name:"to-sidekiq" placeholder:"NAME" help:"Sidekiq's workers run the jobs of this queue: give them those that are due; may be repeated."`
	Keep      []string `name:"keep" sep:"none" placeholder:"CLASS=QUEUE" help:"Put the jobs of a class that are in Redis into a queue of --to-sidekiq, whichever queue they name; may be repeated. CLASS may end with *."`
	DryRun    bool     `name:"dry-run" help:"Only count the jobs in Redis, and say what becomes of them."`
	LogLevel  string   `enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
}

// Run moves jobs until it is stopped.
func (c *sidekiqCmd) Run(ctx context.Context, out output.Streams) error {
	rules, err := c.rules()
	if err != nil {
		return usage.Fault(err)
	}
	bridge, err := sidekiq.New(sidekiq.Config{
		RedisURL: c.RedisURL, Rules: rules, Log: newLog(out.Err, c.LogLevel, "text"),
		Broker: broker.Config{AMQPURL: c.AMQPURL, Name: connect.Name + " bridge"},
	})
	if err != nil {
		return usage.Errorf("--redis-url: %w", err)
	}
	if c.DryRun {
		return errors.Join(c.survey(ctx, out, bridge), bridge.Close())
	}
	return errors.Join(bridge.Run(ctx), bridge.Close())
}

func (c *sidekiqCmd) rules() (sidekiq.Rules, error) {
	rules := sidekiq.Rules{Queues: c.Queue, ToSidekiq: c.ToSidekiq}
	for _, text := range c.Keep {
		rule, err := sidekiq.ParseKeep(text)
		if err != nil {
			return rules, err
		}
		rules.Keep = append(rules.Keep, rule)
	}
	return rules, rules.Check()
}

// survey prints what the bridge would do.
func (c *sidekiqCmd) survey(ctx context.Context, out output.Streams, bridge *sidekiq.Bridge) error {
	groups, err := bridge.Survey(ctx)
	if err != nil {
		return err
	}
	p := c.Printer(out)
	if p.Structured() {
		text, err := json.Marshal(groups)
		if err != nil {
			return err
		}
		return p.Answer(text)
	}
	jobs := int64(0)
	t := &output.Table{Columns: []output.Column{
		output.Plain("PLACE"), output.Name("QUEUE"), output.Name("CLASS"), output.Plain("JOBS"), output.Name("TO"), output.Plain("STAYS BECAUSE"),
	}}
	for _, g := range groups {
		t.Add(g.Place, g.Queue, g.Class, g.Jobs, g.To, g.Stays)
		jobs += int64(g.Jobs)
	}
	return p.List(t, wire.Counted(jobs, "job")+" in Redis, nothing was moved")
}

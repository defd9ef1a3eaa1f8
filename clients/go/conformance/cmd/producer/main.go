// Command producer is tested by clients/conformance. The README there says what it must do.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

type command struct {
	Op      string  `json:"op"`
	Class   string  `json:"class"`
	Args    []any   `json:"args"`
	Options options `json:"options"`
	Timeout float64 `json:"timeout"`
	At      float64 `json:"at"`
	In      float64 `json:"in"`
	Queue   string  `json:"queue"`
	Prefix  string  `json:"prefix"`
	Count   int     `json:"count"`
	Source  string  `json:"source"`
	Jobs    []struct {
		Name    string   `json:"name"`
		Cron    string   `json:"cron"`
		Every   float64  `json:"every"`
		TZ      string   `json:"tz"`
		Class   string   `json:"class"`
		Args    []any    `json:"args"`
		Queue   string   `json:"queue"`
		CatchUp string   `json:"catch_up"`
		Overlap string   `json:"overlap"`
		Except  []string `json:"except"`
		Paused  bool     `json:"paused"`
	} `json:"jobs"`
	Limits []struct {
		bound
		Name      string           `json:"name"`
		Queues    []string         `json:"queues"`
		Classes   []string         `json:"classes"`
		Per       []millrace.Part  `json:"per"`
		Overrides map[string]bound `json:"overrides"`
		Paused    bool             `json:"paused"`
	} `json:"limits"`
	Queues []struct {
		Name       string         `json:"name"`
		Key        string         `json:"key"`
		MaxWaiting int            `json:"max_waiting"`
		Weights    map[string]int `json:"weights"`
		Ahead      int            `json:"ahead"`
		Paused     bool           `json:"paused"`
	} `json:"queues"`
}

type bound struct {
	Concurrency int `json:"concurrency"`
	Rate        *struct {
		Jobs    int     `json:"jobs"`
		Seconds float64 `json:"seconds"`
		Burst   int     `json:"burst"`
	} `json:"rate"`
}

func (b bound) bound() millrace.Bound {
	bound := millrace.Bound{Concurrency: b.Concurrency}
	if b.Rate != nil {
		bound.Rate = &millrace.Rate{Jobs: b.Rate.Jobs, In: seconds(b.Rate.Seconds), Burst: b.Rate.Burst}
	}
	return bound
}

type options struct {
	Queue       string          `json:"queue"`
	Retry       json.RawMessage `json:"retry"`
	Priority    int             `json:"priority"`
	Tags        []string        `json:"tags"`
	JID         string          `json:"jid"`
	ExpiresAt   float64         `json:"expires_at"`
	Timeout     float64         `json:"timeout"`
	Dead        *bool           `json:"dead"`
	Backtrace   int             `json:"backtrace"`
	Fields      map[string]any  `json:"fields"`
	Traceparent string          `json:"traceparent"`
	Limited     bool            `json:"limited"`
	LimitKey    string          `json:"limit_key"`
	Unique      json.RawMessage `json:"unique"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	results, err := os.OpenFile(os.Getenv("MILLRACE_RESULTS"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	client, err := millrace.NewClient(millrace.ClientConfig{
		URL: os.Getenv("MILLRACE_AMQP_URL"), Middleware: []millrace.ClientMiddleware{marks("outer"), marks("inner")},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return err
		}
		text, err := json.Marshal(c.carryOut(client, n))
		if err != nil {
			return err
		}
		if _, err := results.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// marks returns middleware that adds its name to the args, which shows the order.
func marks(name string) millrace.ClientMiddleware {
	return func(next millrace.EnqueueFunc) millrace.EnqueueFunc {
		return func(ctx context.Context, job *millrace.EnqueueParams) (string, error) {
			switch job.Class() {
			case "Swallowed":
				return "", nil
			case "Wrapped":
				list, _ := job.Args.(millrace.ArgList)
				job.Args = millrace.Args(list.Class, append(list.List, name)...)
			}
			return next(ctx, job)
		}
	}
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func at(n float64) time.Time { return time.UnixMicro(int64(n * 1e6)) }

func (c command) carryOut(client *millrace.Client, line int) map[string]any {
	ctx := context.Background()
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, seconds(c.Timeout))
		defer cancel()
	}
	switch c.Op {
	case "bulk":
		return map[string]any{"line": line, "jids": c.bulk(ctx, client)}
	case "define":
		define := c.define
		switch {
		case c.Limits != nil:
			define = c.defineLimits
		case c.Queues != nil:
			define = c.defineQueues
		}
		did, err := define(ctx, client)
		if err != nil {
			return map[string]any{"line": line, "error": kind(err), "message": err.Error()}
		}
		return map[string]any{"line": line, "made": did.Made, "changed": did.Changed, "forgotten": did.Forgotten, "unchanged": did.Unchanged}
	}
	if c.Op == "enqueue_unique" {
		stays, err := c.enqueueUnique(ctx, client)
		if err != nil {
			return map[string]any{"line": line, "error": kind(err), "message": err.Error()}
		}
		return map[string]any{"line": line, "jids": []string{stays.JID}, "duplicate": stays.Duplicate}
	}
	jid, err := c.enqueue(ctx, client)
	if err != nil {
		return map[string]any{"line": line, "error": kind(err), "message": err.Error()}
	}
	return map[string]any{"line": line, "jids": []string{jid}}
}

func (c command) enqueue(ctx context.Context, client *millrace.Client) (string, error) {
	args, options := millrace.Args(c.Class, c.Args...), c.Options.options()
	switch c.Op {
	case "enqueue_at":
		return client.EnqueueAt(ctx, at(c.At), args, &options)
	case "enqueue_in":
		return client.EnqueueIn(ctx, seconds(c.In), args, &options)
	}
	return client.Enqueue(ctx, args, &options)
}

func (c command) enqueueUnique(ctx context.Context, client *millrace.Client) (millrace.Decision, error) {
	options := c.Options.options()
	if c.At > 0 {
		options.ScheduledAt = at(c.At)
	}
	return client.EnqueueUnique(ctx, millrace.Args(c.Class, c.Args...), &options)
}

func (c command) define(ctx context.Context, client *millrace.Client) (millrace.Defined, error) {
	var jobs []millrace.PeriodicJob
	for _, j := range c.Jobs {
		jobs = append(jobs, millrace.PeriodicJob{
			Name: j.Name, Cron: j.Cron, Every: seconds(j.Every), TZ: j.TZ, Args: millrace.Args(j.Class, j.Args...), Options: &millrace.EnqueueOptions{Queue: j.Queue},
			CatchUp: millrace.CatchUp(j.CatchUp), Overlap: millrace.Overlap(j.Overlap), Except: j.Except, Paused: j.Paused,
		})
	}
	return client.Define(ctx, c.Source, jobs...)
}

func (c command) defineLimits(ctx context.Context, client *millrace.Client) (millrace.Defined, error) {
	var limits []millrace.Limit
	for _, l := range c.Limits {
		b := l.bound.bound()
		limit := millrace.Limit{Name: l.Name, Queues: l.Queues, Classes: l.Classes, Per: l.Per, Concurrency: b.Concurrency, Rate: b.Rate, Paused: l.Paused,
			Overrides: map[string]millrace.Bound{}}
		for key, of := range l.Overrides {
			limit.Overrides[key] = of.bound()
		}
		limits = append(limits, limit)
	}
	return client.DefineLimits(ctx, c.Source, limits...)
}

func (c command) defineQueues(ctx context.Context, client *millrace.Client) (millrace.Defined, error) {
	var queues []millrace.GovernedQueue
	for _, q := range c.Queues {
		queues = append(queues, millrace.GovernedQueue(q))
	}
	return client.DefineQueues(ctx, c.Source, queues...)
}

func (c command) bulk(ctx context.Context, client *millrace.Client) (jids []*string) {
	for begin := 0; begin < c.Count; begin += 500 {
		var jobs []millrace.EnqueueParams
		for i := begin; i < min(begin+500, c.Count); i++ {
			jobs = append(jobs, millrace.EnqueueParams{Args: millrace.Args(c.Class, fmt.Sprint(c.Prefix, i)), Options: millrace.EnqueueOptions{Queue: c.Queue}})
		}
		results, _ := client.EnqueueBulk(ctx, jobs) // each result has its error
		for _, r := range results {
			if r.Err != nil {
				fmt.Fprintln(os.Stderr, r.Err)
				jids = append(jids, nil)
			} else {
				jids = append(jids, &r.JID)
			}
		}
	}
	return jids
}

func (o options) options() millrace.EnqueueOptions {
	out := millrace.EnqueueOptions{
		Queue: o.Queue, Priority: o.Priority, Tags: o.Tags, JID: o.JID, Timeout: seconds(o.Timeout), NoDead: o.Dead != nil && !*o.Dead,
		Backtrace: o.Backtrace, Fields: o.Fields, Traceparent: o.Traceparent,
		Limited: o.Limited, LimitKey: o.LimitKey, Unique: unique(o.Unique),
	}
	if o.ExpiresAt > 0 {
		out.ExpiresAt = at(o.ExpiresAt)
	}
	var n int
	switch text := string(o.Retry); {
	case text == "false":
		out.MaxAttempts = 1
	case text == "true":
		out.MaxAttempts = 26
	case json.Unmarshal(o.Retry, &n) == nil:
		out.MaxAttempts = n + 1
	}
	return out
}

// unique returns the option of a job. A key that is empty is given as one that no job can have.
func unique(text json.RawMessage) *millrace.Unique {
	var given struct {
		Key   *string              `json:"key"`
		By    []string             `json:"by"`
		While millrace.While       `json:"while"`
		For   float64              `json:"for"`
		On    millrace.OnDuplicate `json:"on"`
		Wait  float64              `json:"wait"`
		Max   float64              `json:"max"`
	}
	if string(text) == "true" {
		return &millrace.Unique{}
	}
	if json.Unmarshal(text, &given) != nil {
		return nil
	}
	u := millrace.Unique{By: given.By, While: given.While, For: seconds(given.For), On: given.On, Wait: seconds(given.Wait), Max: seconds(given.Max)}
	if given.Key != nil {
		if u.Key = *given.Key; u.Key == "" {
			u.Key = "\n"
		}
	}
	return &u
}

func kind(err error) string {
	for name, target := range map[string]error{
		"Invalid": millrace.ErrInvalid, "Refused": millrace.ErrRefused, "Unreachable": millrace.ErrUnreachable, "Unconfirmed": millrace.ErrUnconfirmed,
		"Undecided": millrace.ErrUndecided,
	} {
		if errors.Is(err, target) {
			return name
		}
	}
	return "Error"
}

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/pause"
)

type eventsCmd struct {
	apiFlags

	Topics []string `placeholder:"TOPIC" help:"Only these topics: overview, queues, processes, scheduled, retries, dead, operations, jobs."`
	For    string   `placeholder:"DURATION" help:"End after this time: 90s, 15m. Without it, the command runs until it is interrupted."`
}

// Run prints changes as they happen.
func (c *eventsCmd) Run(ctx context.Context, out output.Streams) error {
	if c.For != "" {
		d, err := humantime.ParseDuration(c.For)
		if err != nil {
			return named("--for", err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	t := &tail{api: c.APIClient(), query: given("topics", strings.Join(c.Topics, ",")), out: out, printer: c.Printer(out)}
	defer t.api.HTTP.CloseIdleConnections()
	return t.follow(ctx)
}

// tail prints events over as many connections as needed. Each continues where the one before ended.
type tail struct {
	api     *apiclient.Client
	query   url.Values
	out     output.Streams
	printer *output.Printer
	last    string // the newest event's id
	joined  bool   // the sidecar has answered once, so it is worth waiting for
}

var (
	errSilent    = errors.New("the sidecar is silent")
	errUnwritten = errors.New("what has changed cannot be written")
)

// silence is longer than any pause of the sidecar, which sends something every 15 seconds.
const silence = 45 * time.Second

// reconnectAtMostEvery bounds the pause before the next connection.
const reconnectAtMostEvery = 5 * time.Second

// follow prints events until ctx ends.
func (t *tail) follow(ctx context.Context) error {
	retry := pause.Growing(reconnectAtMostEvery)
	reported := ""
	for {
		before := t.last
		err := t.watch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case !t.passes(err):
			return err
		}
		if t.last != before {
			retry.Reset()
			reported = ""
		}
		if err.Error() != reported {
			reported = err.Error()
			fmt.Fprintf(t.out.Err, "millrace: %s; connecting again\n", reported)
		}
		_ = pause.For(ctx, retry.NextBackOff())
	}
}

// passes reports whether the next connection may be without an error.
func (t *tail) passes(err error) bool {
	var refusal *apiclient.Error
	switch {
	case !t.joined || errors.Is(err, errUnwritten):
		return false
	case errors.As(err, &refusal):
		return refusal.Status >= http.StatusInternalServerError || refusal.Status == http.StatusTooManyRequests
	}
	return true
}

// watch prints the events of one connection. It always returns an error.
func (t *tail) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	header := http.Header{}
	if t.last != "" {
		header.Set("Last-Event-ID", t.last)
	}
	stream, err := t.api.Stream(ctx, apiclient.Request{Path: "/api/events", Query: t.query, Header: header})
	if err == nil {
		defer stream.Close()
		t.joined = true
		err = readEvents(stream, func() { watchdog.Reset(silence) }, t.take)
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// event is a server-sent event.
type event struct{ id, kind, data string }

// readEvents reads events until there are no more. Each line is a sign of life. The data of an
// event is one line, because the sidecar's JSON is.
func readEvents(r io.Reader, alive func(), take func(*event) error) error {
	lines := bufio.NewReader(r)
	var e event
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return apiclient.Interrupted(err)
		}
		alive()
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "id":
			e.id = value
		case name == "event":
			e.kind = value
		case name == "data":
			e.data = value
		case line == "":
			if err := take(&e); err != nil {
				return err
			}
			e = event{}
		}
	}
}

// take prints one event.
func (t *tail) take(e *event) error {
	switch e.kind {
	case "update":
		if err := t.print(e.data); err != nil {
			return fmt.Errorf("%w: %w", errUnwritten, err)
		}
		t.last = e.id
	case "dropped":
		fmt.Fprintf(t.out.Err, "millrace: %s\n", e.reason())
	case "end":
		return fmt.Errorf("the sidecar ended this: %s", e.reason())
	}
	return nil
}

// print prints an update: its data for programs, what it is about for people.
func (t *tail) print(data string) error {
	now, topics := time.Now(), []string{}
	gjson.Parse(data).ForEach(func(topic, value gjson.Result) bool {
		if topic.String() == "now" {
			now = humantime.Unix(value.Float())
		} else {
			topics = append(topics, topic.String())
		}
		return true
	})
	return t.printer.Update(data, now, strings.Join(topics, " "))
}

func (e *event) reason() string { return gjson.Get(e.data, "reason").String() }

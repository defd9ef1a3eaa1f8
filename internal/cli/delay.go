package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	client "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

type delayCmd struct {
	producer

	Exchange string `arg:"" help:"Exchange to which the message goes; '' is the default exchange."`
	Key      string `arg:"" name:"routing-key" help:"Routing key."`
	Body     string `arg:"" optional:"" help:"Body; - reads it from standard input."`

	whenFlags
	Header   map[string]string `short:"H" placeholder:"NAME=VALUE" help:"Header; may be given several times. A value that is JSON, such as 5, true or [1,2], is no text."`
	Property map[string]string `short:"p" placeholder:"NAME=VALUE" help:"Property, such as content_type=text/plain or priority=5; may be given several times."`
	Retry    int               `placeholder:"N" default:"25" help:"Maximum number of retries if the message cannot be delivered (${default})."`
	Tag      []string          `placeholder:"TAG" help:"Tag of the job; may be given several times."`
}

// Run publishes a delayed message as a scheduled job, and prints its jid when the broker has
// confirmed it.
func (c *delayCmd) Run(ctx context.Context, out output.Streams) error {
	now := time.Now()
	at, err := c.when(now)
	if err != nil {
		return err
	}
	m, err := c.message(out.In)
	if err != nil {
		return err
	}
	arg, err := m.MarshalJSON() // checks it
	if err != nil {
		return usage.Fault(err)
	}
	job := jobFlags{Class: m.Kind(), Args: "[" + string(arg) + "]", Queue: wire.MessageQueue, Retry: c.Retry, Tag: c.Tag}
	j, err := job.job(now)
	if err != nil {
		return err
	}
	return c.schedule(ctx, out, at, &j)
}

func (c *delayCmd) message(in io.Reader) (m client.Message, err error) {
	m = client.Message{Exchange: c.Exchange, RoutingKey: c.Key, Body: []byte(c.Body)}
	if c.Body == "-" {
		if m.Body, err = io.ReadAll(in); err != nil {
			return m, err
		}
	}
	if m.Properties, err = c.properties(); err != nil {
		return m, err
	}
	for name, text := range c.Header {
		if m.Properties.Headers == nil {
			m.Properties.Headers = map[string]any{}
		}
		m.Properties.Headers[name] = headerOf(text)
	}
	return m, nil
}

// headerOf returns a JSON value, or else the text.
func headerOf(text string) any {
	var value any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil || d.More() {
		return text
	}
	return value
}

// properties reads the properties. All but three are texts.
func (c *delayCmd) properties() (p client.MessageProperties, err error) {
	members := map[string]any{}
	for name, text := range c.Property {
		switch name {
		case "headers":
			return p, usage.Errorf("--property %s: give each header with --header", name)
		case "delivery_mode", "priority", "timestamp":
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return p, usage.Errorf("--property %s: write a whole number", name)
			}
			if name == "timestamp" {
				p.Timestamp = time.Unix(n, 0)
			} else {
				members[name] = n
			}
		default:
			members[name] = text
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return p, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, usage.Errorf("--property: %w", err)
	}
	return p, nil
}

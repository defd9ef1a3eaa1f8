package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

type definitionsCmd struct {
	Export exportDefinitionsCmd `cmd:"" help:"Print the queues, and which of them are paused, as JSON."`
	Import importDefinitionsCmd `cmd:"" help:"Make the queues of such a file, and pause those that are paused in it."`
}

// definitions are what operators have set. Settings of sidecars are in their configuration, and the
// types of queues, users, permissions and policies are in the broker's own definitions.
type definitions struct {
	Queues []queueDefinition `json:"queues"`
}

type queueDefinition struct {
	Name   string      `json:"name"`
	Paused *wire.Pause `json:"paused,omitempty"`
}

type exportDefinitionsCmd struct{ flags.Client }

// Run prints the definitions.
func (c *exportDefinitionsCmd) Run(ctx context.Context, out output.Streams) error {
	all, err := definitionsOf(ctx, c.APIClient())
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(all)
}

// definitionsOf asks for all queues.
func definitionsOf(ctx context.Context, api *apiclient.Client) (*definitions, error) {
	all := &definitions{Queues: []queueDefinition{}}
	for page := 1; ; page++ {
		query := given("page", fmt.Sprint(page), "page_size", "500")
		l, err := apiclient.Get[answer.Page[answer.Queue]](ctx, api, queuesPath, query)
		if err != nil {
			return nil, err
		}
		for _, q := range l.Items {
			if q.Paused != nil && q.Paused.Move != nil { // paused by the move itself
				q.Paused = nil
			}
			all.Queues = append(all.Queues, queueDefinition{q.Name, q.Paused})
		}
		if len(l.Items) == 0 || l.PageCount == nil || int64(page) >= *l.PageCount {
			return all, nil
		}
	}
}

type importDefinitionsCmd struct {
	apiFlags
	dryRunFlag
	reasonFlag

	File string `arg:"" optional:"" default:"-" help:"File that millrace definitions export has written, or - for standard input (${default})."`
}

// definedQueue is what an import has done to a queue.
type definedQueue struct {
	Queue string `json:"queue"`
	Done  string `json:"done"`
}

var definedRows = rows[definedQueue]{[]output.Column{output.Name("QUEUE"), output.Plain("DONE")},
	func(q *definedQueue) []any { return []any{q.Queue, q.Done} }}

// Run makes and pauses queues. It resumes and deletes none.
func (c *importDefinitionsCmd) Run(ctx context.Context, out output.Streams) error {
	wanted, err := c.read(out)
	if err != nil {
		return err
	}
	found, err := definitionsOf(ctx, c.APIClient())
	if err != nil {
		return err
	}
	now := map[string]queueDefinition{}
	for _, q := range found.Queues {
		now[q.Name] = q
	}
	all := []definedQueue{}
	for _, q := range wanted.Queues {
		had, exists := now[q.Name]
		done, err := c.define(ctx, q, exists, had.Paused != nil)
		if err != nil {
			return errors.Join(named(fmt.Sprintf("queue %q", q.Name), err), c.print(out, all))
		}
		all = append(all, definedQueue{q.Name, done})
	}
	return c.print(out, all)
}

func (c *importDefinitionsCmd) print(out output.Streams, all []definedQueue) error {
	p := c.Printer(out)
	if p.Structured() {
		body, err := json.Marshal(all)
		if err != nil {
			return err
		}
		return p.Answer(body)
	}
	n := int64(len(all))
	return p.List(definedRows.table(all), summary(n, n, nil, 0))
}

// define makes a queue, and pauses it, as far as that is not done yet. It returns what it did.
func (c *importDefinitionsCmd) define(ctx context.Context, q queueDefinition, exists, paused bool) (done string, err error) {
	pause := q.Paused != nil && !paused
	switch {
	case exists && !pause:
		return "unchanged", nil
	case exists:
		done = "paused"
	case pause:
		done = "made and paused"
	default:
		done = "made"
	}
	if c.DryRun {
		return "to be " + done, nil
	}
	path := queuesPath + "/" + apiclient.Segment(q.Name)
	put := func(path, reason string) error {
		_, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPut, Path: path, Body: fields{"reason": reason}.JSON()})
		return err
	}
	if !exists {
		err = put(path, c.Reason)
	}
	if err == nil && pause {
		err = put(path+"/pause", cmp.Or(c.Reason, q.Paused.Reason))
	}
	return done, err
}

func (c *importDefinitionsCmd) read(out output.Streams) (*definitions, error) {
	var text []byte
	var err error
	if c.File == "-" {
		text, err = io.ReadAll(out.In)
	} else {
		text, err = os.ReadFile(c.File)
	}
	if err != nil {
		return nil, usage.Fault(err)
	}
	var d definitions
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return nil, usage.Fault(fmt.Errorf("%s is no file of millrace definitions export: %w", c.File, err))
	}
	for _, q := range d.Queues {
		if err := wire.CheckQueueName(q.Name); err != nil {
			return nil, usage.Fault(fmt.Errorf("%s: queue %q: %w", c.File, q.Name, err))
		}
	}
	return &d, nil
}

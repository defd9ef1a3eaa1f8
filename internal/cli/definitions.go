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
	"strings"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

type definitionsCmd struct {
	Export exportDefinitionsCmd `cmd:"" help:"Print the queues, which of them are paused, and what operators have set of limits, governed queues and periodic jobs, as JSON."`
	Import importDefinitionsCmd `cmd:"" help:"Make and pause the queues in an exported file, and set its limits, governed queues and periodic jobs."`
}

// definitions are what operators have set. Settings of sidecars are in their configuration, and the
// types of queues, users, permissions and policies are in the broker's own definitions.
type definitions struct {
	Queues []queueDefinition `json:"queues"`

	// Layers of operators, with names.
	Limits       []json.RawMessage `json:"limits,omitempty"`
	Governed     []json.RawMessage `json:"governed_queues,omitempty"`
	PeriodicJobs []json.RawMessage `json:"periodic_jobs,omitempty"`
}

type queueDefinition struct {
	Name   string      `json:"name"`
	Paused *wire.Pause `json:"paused,omitempty"`
}

type exportDefinitionsCmd struct{ flags.Client }

// Run prints the definitions.
func (c *exportDefinitionsCmd) Run(ctx context.Context, out output.Streams) error {
	api := c.APIClient()
	defer api.HTTP.CloseIdleConnections()
	caughtUp, err := api.Check(ctx, "views-caught-up")
	if err != nil {
		return err
	}
	if caughtUp.Failed() {
		return errors.New("the sidecar has not read its streams yet, so it may not know of all pauses: try again when millrace health ready succeeds")
	}
	all, err := definitionsOf(ctx, api)
	if err != nil {
		return err
	}
	for _, k := range layeredKinds {
		if *k.of(all), err = k.exported(ctx, api); err != nil {
			return err
		}
	}
	encoder := json.NewEncoder(out.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(all)
}

// decodeDocument decodes the one JSON document of a file, and refuses members that are not known.
func decodeDocument(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return nil
}

// definitionsOf asks for all queues.
func definitionsOf(ctx context.Context, api *apiclient.Client) (*definitions, error) {
	all := &definitions{Queues: []queueDefinition{}}
	for page := 1; ; page++ {
		query := given("page", fmt.Sprint(page), "page_size", "500")
		body, err := api.Fetch(ctx, apiclient.Request{Path: queuesPath, Query: query})
		if err != nil {
			return nil, err
		}
		l, err := apiclient.Decode[answer.Page[answer.Queue]](body)
		if err != nil {
			return nil, err
		}
		for _, q := range l.Items {
			all.Queues = append(all.Queues, queueDefinition{q.Name, byOperator(q.Paused)})
		}
		if len(l.Items) == 0 || l.PageCount == nil || int64(page) >= *l.PageCount {
			return all, nil
		}
	}
}

// byOperator returns a pause that an operator has set, also if the queue is being moved. It returns
// nil for the pause of a move itself.
func byOperator(p *wire.Pause) *wire.Pause {
	if p == nil || p.Move != nil && !p.Move.Paused {
		return nil
	}
	set := *p
	set.Move = nil
	return &set
}

type importDefinitionsCmd struct {
	apiFlags
	dryRunFlag
	reasonFlag

	File string `arg:"" optional:"" default:"-" help:"File that millrace definitions export has written, or - for standard input (${default})."`
}

// imported is what an import has done to one of a kind.
type imported struct{ Kind, Name, Done string }

// MarshalJSON has the name in a member that is called as the kind.
func (i imported) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{i.Kind: i.Name, "done": i.Done})
}

var importedRows = rows[imported]{[]output.Column{output.Plain("KIND"), output.Name("NAME"), output.Plain("DONE")},
	func(i *imported) []any {
		return []any{strings.ReplaceAll(i.Kind, "_", " "), i.Name, i.Done}
	}}

// Run makes and pauses queues, and sets the operator's layers of limits, governed queues and
// periodic jobs. It resumes and deletes none.
func (c *importDefinitionsCmd) Run(ctx context.Context, out output.Streams) error {
	wanted, err := c.read(out)
	if err != nil {
		return err
	}
	api := c.APIClient()
	defer api.HTTP.CloseIdleConnections()
	found, err := definitionsOf(ctx, api)
	if err != nil {
		return err
	}
	now := map[string]queueDefinition{}
	for _, q := range found.Queues {
		now[q.Name] = q
	}
	all := []imported{}
	for _, q := range wanted.Queues {
		had, exists := now[q.Name]
		done, err := c.define(ctx, api, q, exists, had.Paused != nil)
		if err != nil {
			return errors.Join(named(fmt.Sprintf("queue %q", q.Name), err), c.print(out, all))
		}
		all = append(all, imported{"queue", q.Name, done})
	}
	for _, k := range layeredKinds {
		done, err := c.setLayers(ctx, api, k, *k.of(wanted))
		if all = append(all, done...); err != nil {
			return errors.Join(err, c.print(out, all))
		}
	}
	return c.print(out, all)
}

func (c *importDefinitionsCmd) print(out output.Streams, all []imported) error {
	p := c.Printer(out)
	if p.Structured() {
		body, err := json.Marshal(all)
		if err != nil {
			return err
		}
		return p.Answer(body)
	}
	n := int64(len(all))
	return p.List(importedRows.table(all), summary(n, n, nil, 0))
}

// define makes a queue, and pauses it, as far as that is not done yet. It returns what it did.
func (c *importDefinitionsCmd) define(ctx context.Context, api *apiclient.Client, q queueDefinition, exists, paused bool) (done string, err error) {
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
		_, err := api.Fetch(ctx, apiclient.Request{Method: http.MethodPut, Path: path, Body: fields{"reason": reason}.JSON()})
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
	text, err := readAll(out, c.File)
	if err != nil {
		return nil, usage.Fault(err)
	}
	var d definitions
	err = decodeDocument(text, &d)
	if err == nil && d.Queues == nil {
		err = errors.New("it has no queues")
	}
	for _, k := range layeredKinds {
		if err == nil {
			_, err = k.named(*k.of(&d))
		}
	}
	if err != nil {
		return nil, usage.Fault(fmt.Errorf("%s was not written by millrace definitions export: %w", c.File, err))
	}
	seen := map[string]bool{}
	for _, q := range d.Queues {
		err := wire.CheckQueueName(q.Name)
		if seen[q.Name] {
			err = errors.New("it is listed twice")
		}
		if err != nil {
			return nil, usage.Fault(fmt.Errorf("%s: queue %q: %w", c.File, q.Name, err))
		}
		seen[q.Name] = true
	}
	return &d, nil
}

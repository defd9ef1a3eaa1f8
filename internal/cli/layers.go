package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/wire"
)

// layeredKind is a kind of what is defined in layers, as an exported file has it.
type layeredKind struct {
	kind  string // in what an import prints
	path  string // of the API
	of    func(*definitions) *[]json.RawMessage
	named func(layers []json.RawMessage) ([]wire.NamedLayer, error)
}

// layeredKinds are in the order in which an import sets them: what holds jobs back is there before
// jobs come.
var layeredKinds = []layeredKind{
	{"limit", limitsPath, func(d *definitions) *[]json.RawMessage { return &d.Limits }, func(layers []json.RawMessage) ([]wire.NamedLayer, error) {
		return (&wire.Definitions{Limits: layers}).NamedLimits()
	}},
	{"governed_queue", governedPath, func(d *definitions) *[]json.RawMessage { return &d.Governed }, func(layers []json.RawMessage) ([]wire.NamedLayer, error) {
		return (&wire.Definitions{Queues: layers}).GovernedQueues()
	}},
	{"periodic_job", periodicPath, func(d *definitions) *[]json.RawMessage { return &d.PeriodicJobs }, func(layers []json.RawMessage) ([]wire.NamedLayer, error) {
		return (&wire.Definitions{PeriodicJobs: layers}).Periodics()
	}},
}

// one returns what one of the kind is called before its name.
func (k *layeredKind) one() string { return strings.ReplaceAll(k.kind, "_", " ") }

// layered is what an export reads of one that is defined in layers.
type layered struct {
	Name   string
	Layers map[string]answer.PeriodicLayer
}

// hiddenValue stands for what the user may not see.
const hiddenValue = `"[hidden]"`

// exported returns what operators have set of a kind. The rest is defined by code and files, which
// know it.
func (k *layeredKind) exported(ctx context.Context, api *apiclient.Client) (all []json.RawMessage, err error) {
	found, err := apiclient.Get[[]layered](ctx, api, k.path, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range *found {
		layer, set := d.Layers[wire.LayerOperator]
		if !set {
			continue
		}
		if strings.Contains(string(layer.Value), hiddenValue) {
			return nil, fmt.Errorf("%s %q has values that this user may not see: export as a user who may act", k.one(), d.Name)
		}
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(layer.Value, &members); err != nil {
			return nil, fmt.Errorf("the sidecar's answer cannot be read: %w", err)
		}
		members["name"] = json.RawMessage(wire.Quote(d.Name))
		raw, err := json.Marshal(members)
		if err != nil {
			return nil, err
		}
		all = append(all, raw)
	}
	return all, nil
}

// setLayers sets the operator's layers of a kind that differ. It returns what it did before an
// error.
func (c *importDefinitionsCmd) setLayers(ctx context.Context, api *apiclient.Client, k layeredKind, layers []json.RawMessage) (all []imported, err error) {
	wanted, err := k.named(layers)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	found, err := apiclient.Get[[]layered](ctx, api, k.path, nil)
	if err != nil {
		return nil, err
	}
	now := map[string]map[string]answer.PeriodicLayer{}
	for _, d := range *found {
		now[d.Name] = d.Layers
	}
	for _, w := range wanted {
		had, exists := now[w.Name]
		done := "set"
		switch {
		case !exists:
			done = "made"
		case bytes.Equal(had[wire.LayerOperator].Value, w.Value):
			done = "unchanged"
		}
		if done != "unchanged" && c.DryRun {
			done = "to be " + done
		} else if done != "unchanged" {
			request := apiclient.Request{Method: http.MethodPut, Path: k.path + "/" + apiclient.Segment(w.Name), Body: w.Value, Header: http.Header{}}
			if c.Reason != "" {
				request.Header.Set("X-Reason", c.Reason)
			}
			if _, err := api.Fetch(ctx, request); err != nil {
				return all, fmt.Errorf("%s %q: %w", k.one(), w.Name, err)
			}
		}
		all = append(all, imported{k.kind, w.Name, done})
	}
	return all, nil
}

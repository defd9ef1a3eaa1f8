package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// kind is a kind of what users define in layers.
type kind interface{ says() kindWords }

// kindWords are what commands say about one of a kind.
type kindWords struct {
	path  string // of the API, without the name
	one   string // what one is called before its name
	ask   string // the question before one is deleted, with %q for its name
	ended string // what happened to one that was deleted
}

// oneOf is about one of a kind.
type oneOf[K kind] struct {
	apiFlags

	Name string `arg:"" help:"Name of ${defined}."`
}

func (c *oneOf[K]) says() kindWords {
	var k K
	return k.says()
}

func (c *oneOf[K]) path() string { return c.says().path + "/" + apiclient.Segment(c.Name) }

// action returns an action on it.
func (c *oneOf[K]) action(method, path, done string, body []byte) action {
	return action{Request: apiclient.Request{Method: method, Path: c.path() + path, Body: body},
		did: fields{"name": c.Name, "done": done}, said: fmt.Sprintf("%s %q %s", c.says().one, c.Name, done)}
}

type (
	showOneCmd[K kind]  struct{ oneOf[K] }
	pauseOneCmd[K kind] struct {
		oneOf[K]
		reasonFlag
	}
	deleteOneCmd[K kind] struct {
		oneOf[K]
		reasonFlag
		output.Confirm

		Layer string `placeholder:"LAYER" help:"Only what this layer defines: code, file or operator."`
	}
)

// Run prints it.
func (c *showOneCmd[K]) Run(ctx context.Context, out output.Streams) error {
	return c.getFacts(ctx, out, c.path(), nil)
}

// Run does what the command is called.
func (c *pauseOneCmd[K]) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	verb := k.Selected().Name
	return c.act(ctx, out, c.action(http.MethodPut, "/"+verb, verb+"d", c.body()))
}

// Run deletes it, or a layer of it.
func (c *deleteOneCmd[K]) Run(ctx context.Context, out output.Streams) error {
	if err := c.Ask(out, c.says().ask, c.Name); err != nil {
		return err
	}
	a := c.action(http.MethodDelete, "", c.says().ended, c.body())
	if c.Layer != "" {
		a.Query = url.Values{"layer": {c.Layer}}
	}
	return c.act(ctx, out, a)
}

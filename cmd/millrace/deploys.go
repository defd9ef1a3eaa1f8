package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type deploysCmd struct {
	List listDeploysCmd `cmd:"" default:"withargs" aliases:"ls" help:"List deploys, the newest first: those of the last year, unless --from is set."`
	Mark markDeployCmd  `cmd:"" help:"Mark a deploy in all charts."`
}

const deploysPath = "/api/deploys"

// deployRow is a deploy, as the API gives it.
type deployRow struct {
	Label string  `json:"label"`
	At    float64 `json:"at"`
	Actor string  `json:"actor"`
}

func (d *deployRow) cells() []any { return []any{humantime.Unix(d.At), d.Label, d.Actor} }

type listDeploysCmd struct {
	lookSettings
	span
}

// Run lists deploys.
func (c *listDeploysCmd) Run(ctx context.Context, out output.Streams) error {
	query := url.Values{}
	if err := c.set(query); err != nil {
		return err
	}
	return look(ctx, out, &c.lookSettings, deploysPath, query, func(p *output.Printer, all *[]deployRow) error {
		columns := []output.Column{output.Time("AT"), output.Name("LABEL"), output.Name("BY")}
		if err := p.Table(output.TableOf(columns, *all, (*deployRow).cells)); err != nil {
			return err
		}
		n := int64(len(*all))
		return p.Note("%s", summary(n, n, nil, 0))
	})
}

type markDeployCmd struct {
	lookSettings

	Label string `arg:"" help:"Name of the deploy, such as v1.2."`
	At    string `placeholder:"TIME" help:"Time of the deploy (now)."`
}

// Run marks a deploy.
func (c *markDeployCmd) Run(ctx context.Context, out output.Streams) error {
	request := output.Fields{"label": c.Label}
	if c.At != "" {
		at, err := humantime.Parse(c.At, time.Now())
		if err != nil {
			return fmt.Errorf("--at: %w", err)
		}
		request["at"] = wire.Seconds(at)
	}
	body, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPost, Path: deploysPath, Body: request.JSON()})
	if err != nil {
		return err
	}
	var d deployRow
	if err := json.Unmarshal(body, &d); err != nil {
		return fmt.Errorf("the sidecar's answer cannot be read: %w", err)
	}
	return c.Printer(out).Done(output.Fields{"label": d.Label, "at": d.At, "done": "marked"}, "deploy %q marked at %s", d.Label, humantime.Unix(d.At).Format(humantime.WithZone))
}

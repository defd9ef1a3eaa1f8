package cli

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type deploysCmd struct {
	List listDeploysCmd `cmd:"" default:"withargs" aliases:"ls" help:"List deploys, the newest first: those of the last year, unless --from is set."`
	Mark markDeployCmd  `cmd:"" help:"Mark a deploy in all charts."`
}

const deploysPath = "/api/deploys"

var deployRows = rows[answer.Deploy]{[]output.Column{output.Time("AT"), output.Name("LABEL"), output.Name("BY")},
	func(d *answer.Deploy) []any { return []any{humantime.Unix(d.At), d.Label, d.Actor} }}

type listDeploysCmd struct {
	apiFlags
	timeRange
}

// Run lists deploys.
func (c *listDeploysCmd) Run(ctx context.Context, out output.Streams) error {
	query := url.Values{}
	if err := c.set(query); err != nil {
		return err
	}
	return deployRows.getAll(ctx, out, &c.apiFlags, deploysPath, query)
}

type markDeployCmd struct {
	apiFlags

	Label string `arg:"" help:"Name of the deploy, such as v1.2."`
	At    string `placeholder:"TIME" help:"Time of the deploy (now)."`
}

// Run marks a deploy.
func (c *markDeployCmd) Run(ctx context.Context, out output.Streams) error {
	request := fields{"label": c.Label}
	if c.At != "" {
		at, err := parseTime("at", c.At, time.Now())
		if err != nil {
			return err
		}
		request["at"] = wire.Seconds(at)
	}
	d, err := send[answer.Deploy](ctx, &c.apiFlags, http.MethodPost, deploysPath, request.JSON())
	if err != nil {
		return err
	}
	return c.Printer(out).Done(fields{"label": d.Label, "at": d.At, "done": "marked"}, "deploy %q marked at %s", d.Label, humantime.Unix(d.At).Format(humantime.WithZone))
}

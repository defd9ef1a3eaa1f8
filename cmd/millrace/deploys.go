package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

type deploysCmd struct {
	List listDeploysCmd `cmd:"" default:"withargs" help:"List them, the newest first: those of the last year, unless --from says otherwise."`
	Mark markDeployCmd  `cmd:"" help:"Mark one in all charts."`
}

const deploysPath = "/api/deploys"

// deployRow is a deploy, as the API gives it.
type deployRow struct {
	Label string  `json:"label"`
	At    float64 `json:"at"`
	Actor string  `json:"actor"`
}

func (d *deployRow) cells() []string {
	return []string{moment(d.At).Format(time.DateTime), d.Label, d.Actor}
}

type listDeploysCmd struct {
	lookSettings
	span
}

// Run lists deploys.
func (c *listDeploysCmd) Run(ctx context.Context, out output) error {
	query := url.Values{}
	if err := c.set(query); err != nil {
		return err
	}
	return look(ctx, out, &c.lookSettings, deploysPath, query, func(w io.Writer, all *[]deployRow) error {
		if err := printTable(w, []string{"AT", "LABEL", "BY"}, rowsOf(*all, (*deployRow).cells)); err != nil {
			return err
		}
		n := int64(len(*all))
		_, err := fmt.Fprintln(w, summary(n, n, nil, 0))
		return err
	})
}

type markDeployCmd struct {
	clientSettings

	Label string `arg:"" help:"What to call it, such as v1.2."`
	At    string `placeholder:"TIME" help:"When it was; now if not given."`
}

// Run marks a deploy.
func (c *markDeployCmd) Run(ctx context.Context, out output) error {
	request := fields{"label": c.Label}
	if c.At != "" {
		at, err := parseTime(c.At, time.Now())
		if err != nil {
			return fmt.Errorf("--at: %w", err)
		}
		request["at"] = wire.Seconds(at)
	}
	body, err := c.client().do(ctx, http.MethodPost, deploysPath, nil, request.json())
	if err != nil {
		return err
	}
	var d deployRow
	if err := json.Unmarshal(body, &d); err != nil {
		return unreadable(err)
	}
	_, err = fmt.Fprintf(out.Out, "%s: marked at %s\n", d.Label, moment(d.At).Format(time.DateTime))
	return err
}

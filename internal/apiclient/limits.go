package apiclient

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
)

// Limits asks for all limits.
func (c *Client) Limits(ctx context.Context) ([]answer.Limit, error) {
	limits, err := Get[[]answer.Limit](ctx, c, "/api/limits", nil)
	if err != nil {
		return nil, err
	}
	return *limits, nil
}

// ClassesSince asks for the classes of the jobs that have run since a time. complete reports
// whether these are all: there may be too many.
func (c *Client) ClassesSince(ctx context.Context, from time.Time) (ran map[string]bool, complete bool, err error) {
	metrics, err := Get[answer.JobMetrics](ctx, c, "/api/job-metrics", url.Values{"from": {strconv.FormatInt(from.Unix(), 10)}})
	if err != nil {
		return nil, false, err
	}
	ran, complete = map[string]bool{}, true
	for i := range metrics.Classes {
		ran[metrics.Classes[i].Name] = true
		complete = complete && !metrics.Classes[i].Other
	}
	return ran, complete, nil
}

// Problems asks for the current problems of a kind, in words.
func (c *Client) Problems(ctx context.Context, kind string) (texts []string, err error) {
	found, err := Get[answer.Attention](ctx, c, "/api/attention", nil)
	if err != nil {
		return nil, err
	}
	for i := range found.Items {
		if found.Items[i].Kind == kind {
			texts = append(texts, found.Items[i].Text)
		}
	}
	return texts, nil
}

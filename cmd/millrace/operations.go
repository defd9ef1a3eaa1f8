package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type operationsCmd struct {
	List   listOperationsCmd  `cmd:"" default:"withargs" help:"List those that run, and the newest that ended."`
	Show   showOperationCmd   `cmd:"" help:"Show one."`
	Begin  beginOperationCmd  `cmd:"" help:"Do the same to all jobs that a filter chooses. Without --yes it only says how many those are."`
	Cancel cancelOperationCmd `cmd:"" help:"End one where it is; what was done stays done."`
	Undo   undoOperationCmd   `cmd:"" help:"Take back what one did to each job: a delete, kill or change."`
}

const operationsPath = "/api/operations"

// operationRow is an operation, as the API gives it.
type operationRow struct {
	ID        string  `json:"id"`
	Action    string  `json:"action"`
	Set       string  `json:"set"`
	State     string  `json:"state"`
	StartedAt float64 `json:"started_at"`
	Done      int64   `json:"done"`
	Failed    int64   `json:"failed"`
	Total     *int64  `json:"total"`
	Actor     string  `json:"actor"`
	Reason    string  `json:"reason"`
}

func (o *operationRow) cells(now time.Time) []string {
	done := strconv.FormatInt(o.Done, 10)
	if o.Total != nil {
		done += "/" + strconv.FormatInt(*o.Total, 10)
	}
	began := relative(moment(o.StartedAt), now)
	return []string{o.ID, o.Action, o.Set, o.State, began, done, strconv.FormatInt(o.Failed, 10), o.Actor, short(o.Reason)}
}

type listOperationsCmd struct{ lookSettings }

// Run lists operations.
func (c *listOperationsCmd) Run(ctx context.Context, out output) error {
	return look(ctx, out, &c.lookSettings, operationsPath, nil, func(w io.Writer, all *[]operationRow) error {
		now := time.Now()
		rows := rowsOf(*all, func(o *operationRow) []string { return o.cells(now) })
		return printTable(w, []string{"ID", "ACTION", "SET", "STATE", "BEGAN", "DONE", "FAILED", "BY", "REASON"}, rows)
	})
}

// oneOperationCmd is about one operation.
type oneOperationCmd struct {
	clientSettings

	ID string `arg:"" name:"id" help:"The operation's id."`
}

type (
	showOperationCmd   struct{ oneOperationCmd }
	cancelOperationCmd struct {
		oneOperationCmd

		Reason string `placeholder:"TEXT" help:"Why."`
	}
	undoOperationCmd struct {
		oneOperationCmd

		Rate   float64 `placeholder:"N" help:"So many jobs a second at most."`
		Reason string  `placeholder:"TEXT" help:"Why; the journal keeps it."`
	}
)

func (c *oneOperationCmd) path() string { return operationsPath + "/" + segment(c.ID) }

// Run prints one operation.
func (c *showOperationCmd) Run(ctx context.Context, out output) error {
	body, err := c.client().do(ctx, http.MethodGet, c.path(), nil, nil)
	if err != nil {
		return err
	}
	return printJSON(out.Out, body)
}

// Run cancels one.
func (c *cancelOperationCmd) Run(ctx context.Context, out output) error {
	if _, err := c.client().do(ctx, http.MethodDelete, c.path(), nil, reasonBody(c.Reason)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out.Out, "operation %s: cancelled\n", c.ID)
	return err
}

// Run begins to undo one.
func (c *undoOperationCmd) Run(ctx context.Context, out output) error {
	request := fields{"reason": c.Reason}
	if c.Rate != 0 {
		request["rate"] = c.Rate
	}
	body, err := c.client().do(ctx, http.MethodPost, c.path()+"/undo", nil, request.json())
	if err != nil {
		return err
	}
	var begun struct{ ID string }
	if err := json.Unmarshal(body, &begun); err != nil {
		return unreadable(err)
	}
	_, err = fmt.Fprintf(out.Out, "operation %s undoes %s; millrace operations show %[1]s tells how far it is\n", begun.ID, c.ID)
	return err
}

type beginOperationCmd struct {
	clientSettings
	chosen

	Action string  `arg:"" enum:"trigger,retry,kill,delete,change" help:"trigger, retry, kill, delete or change."`
	Set    string  `arg:"" enum:"scheduled-jobs,retries,dead-jobs" help:"scheduled-jobs, retries or dead-jobs."`
	At     string  `placeholder:"TIME" help:"For change: the new time."`
	Rate   float64 `placeholder:"N" help:"So many jobs a second at most."`
	Over   string  `placeholder:"DURATION" help:"Spread over so long: 10m."`
	Reason string  `placeholder:"TEXT" help:"Why; the journal keeps it."`
	Yes    bool    `help:"Do it."`
}

// chosen says which jobs are meant.
type chosen struct {
	Queue string `help:"Only this queue's." placeholder:"QUEUE"`
	Class string `help:"Only jobs of this class." placeholder:"CLASS"`
	Error string `help:"Only what failed with an error of this class, or with a fingerprint." placeholder:"CLASS"`
	Tag   string `help:"Only jobs with this tag." placeholder:"TAG"`
	JID   string `name:"jid" help:"Only entries of this job." placeholder:"JID"`
	Text  string `help:"Only records with this text in them." placeholder:"TEXT"`
	span
}

// filter is what is chosen, as an operation has it, and as a list does.
func (c *chosen) filter(now time.Time) (fields, url.Values, error) {
	f, q := fields{}, url.Values{"page": {"1"}, "page_size": {"1"}}
	for name, value := range map[string]string{"queue": c.Queue, "class": c.Class, "error": c.Error, "tag": c.Tag, "jid": c.JID, "text": c.Text} {
		if value != "" {
			f[name] = value
			q.Set(name, value)
		}
	}
	for name, value := range map[string]string{"from": c.From, "to": c.To} {
		if value == "" {
			continue
		}
		at, err := parseTime(value, now)
		if err != nil {
			return nil, nil, fmt.Errorf("--%s: %w", name, err)
		}
		f[name] = float64(at.UnixMicro()) / 1e6
		q.Set(name, at.Format(time.RFC3339Nano))
	}
	return f, q, nil
}

// seen is what a list says of the jobs that are chosen.
type seen struct {
	Total    int64   `json:"total_count"`
	Filtered *int64  `json:"filtered_count"`
	AtLeast  *int64  `json:"filtered_count_at_least"`
	AsOf     int64   `json:"as_of"`
	Next     *string `json:"next"`
}

func (s *seen) count() (n int64, exact bool) {
	switch {
	case s.Filtered != nil:
		return *s.Filtered, true
	case s.AtLeast != nil:
		return *s.AtLeast, s.Next == nil
	}
	return s.Total, true
}

// Run looks at what is chosen, and begins the operation on exactly that.
func (c *beginOperationCmd) Run(ctx context.Context, out output) error {
	filter, query, err := c.filter(time.Now())
	if err != nil {
		return err
	}
	body, err := c.client().do(ctx, http.MethodGet, "/api/"+c.Set, query, nil)
	if err != nil {
		return err
	}
	var s seen
	if err := json.Unmarshal(body, &s); err != nil {
		return unreadable(err)
	}
	n, exact := s.count()
	about := strconv.FormatInt(n, 10)
	if !exact {
		about = "at least " + about
	}
	what := strings.ReplaceAll(c.Set, "-", " ")
	if !c.Yes {
		_, err := fmt.Fprintf(out.Out, "%s of %s are chosen: add --yes to %s them\n", about, what, c.Action)
		return err
	}
	request, err := c.request(filter, s.AsOf, n, exact)
	if err != nil {
		return err
	}
	if body, err = c.client().do(ctx, http.MethodPost, operationsPath, nil, request.json()); err != nil {
		return err
	}
	var begun struct{ ID string }
	if err := json.Unmarshal(body, &begun); err != nil {
		return unreadable(err)
	}
	_, err = fmt.Fprintf(out.Out, "operation %s: %s of %s; millrace operations show %[1]s tells how far it is\n", begun.ID, about, what)
	return err
}

func (c *beginOperationCmd) request(filter fields, asOf, n int64, exact bool) (fields, error) {
	r := fields{"action": c.Action, "set": c.Set, "filter": filter, "as_of": asOf, "reason": c.Reason}
	if exact {
		r["expected_count"] = n
	}
	if c.At != "" {
		at, err := parseTime(c.At, time.Now())
		if err != nil {
			return nil, fmt.Errorf("--at: %w", err)
		}
		r["at"] = float64(at.UnixMicro()) / 1e6
	}
	switch {
	case c.Over != "" && c.Rate != 0:
		return nil, errors.New("--over and --rate say the same: give one of them")
	case c.Over != "":
		d, err := parseDuration(c.Over)
		if err != nil {
			return nil, fmt.Errorf("--over: %w", err)
		}
		if !exact {
			return nil, errors.New("--over needs to know how many jobs there are, which takes too long to count here: give --rate")
		}
		if d > 0 && n > 0 {
			r["rate"] = float64(n) / d.Seconds()
		}
	case c.Rate != 0:
		r["rate"] = c.Rate
	}
	return r, nil
}

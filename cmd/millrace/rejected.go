package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

type rejectedCmd struct {
	List     listRejectedCmd     `cmd:"" default:"withargs" aliases:"ls" help:"List rejected records by stream, the newest of each first."`
	Show     showRejectedCmd     `cmd:"" aliases:"get" help:"Show one rejected record with its reason."`
	Resubmit resubmitRejectedCmd `cmd:"" help:"Publish a corrected record in place of a rejected one."`
	Delete   deleteRejectedCmd   `cmd:"" aliases:"rm" help:"Remove a record from the list."`
}

const rejectedPath = "/api/rejected"

// rejectedRecord is a record that could not be understood, as the API gives it.
type rejectedRecord struct {
	Stream    string `json:"stream"`
	Offset    int64  `json:"offset"`
	Reason    string `json:"reason"`
	Size      int64  `json:"size"`
	Body      string `json:"body"`
	Encoding  string `json:"encoding"`
	Truncated bool   `json:"truncated"`
}

// bytes are the record as it came.
func (r *rejectedRecord) bytes() ([]byte, error) {
	if r.Encoding == "base64" {
		return base64.StdEncoding.DecodeString(r.Body)
	}
	return []byte(r.Body), nil
}

var rejectedColumns = []output.Column{output.Plain("STREAM"), output.Plain("OFFSET"), output.Plain("BYTES"), output.Text("REASON"), output.Text("RECORD")}

func (r *rejectedRecord) cells() []any { return []any{r.Stream, r.Offset, r.Size, r.Reason, r.Body} }

type listRejectedCmd struct {
	lookSettings

	Stream string `placeholder:"STREAM" help:"Only records of this stream."`
	Limit  int    `short:"n" default:"25" help:"Maximum number of rows, up to 500 (${default})."`
	Page   int64  `default:"1" help:"Page of the list (${default})."`
}

// Run lists rejected records.
func (c *listRejectedCmd) Run(ctx context.Context, out output.Streams) error {
	query := url.Values{"page": {strconv.FormatInt(c.Page, 10)}, "page_size": {strconv.Itoa(c.Limit)}}
	setGiven(query, map[string]string{"stream": c.Stream})
	return look(ctx, out, &c.lookSettings, rejectedPath, query, printPage(c.Page, rejectedColumns, (*rejectedRecord).cells))
}

// oneRejectedCmd is about one rejected record.
type oneRejectedCmd struct {
	lookSettings

	Stream string `arg:"" help:"The record's stream."`
	Offset int64  `arg:"" help:"The offset of the record in its stream or queue."`
}

func (c *oneRejectedCmd) path() string {
	return rejectedPath + "/" + apiclient.Segment(c.Stream) + "/" + strconv.FormatInt(c.Offset, 10)
}

func (c *oneRejectedCmd) name() string {
	return fmt.Sprintf("rejected record %d of %s", c.Offset, c.Stream)
}

// do calls the API on the record and says what that did.
func (c *oneRejectedCmd) do(ctx context.Context, out output.Streams, method, action string, send []byte, done string) error {
	if _, err := c.APIClient().Do(ctx, apiclient.Request{Method: method, Path: c.path() + action, Body: send}); err != nil {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	return c.Printer(out).Done(output.Fields{"stream": c.Stream, "offset": c.Offset, "done": done}, "%s: %s", c.name(), done)
}

type showRejectedCmd struct {
	oneRejectedCmd

	Raw bool `help:"Print the record itself, byte for byte."`
}

// Run prints one rejected record.
func (c *showRejectedCmd) Run(ctx context.Context, out output.Streams) error {
	body, err := c.APIClient().Do(ctx, apiclient.Request{Path: c.path()})
	if err != nil {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	if !c.Raw {
		return c.Printer(out).Facts(body)
	}
	var r rejectedRecord
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("the sidecar's answer cannot be read: %w", err)
	}
	raw, err := r.bytes()
	if err != nil {
		return fmt.Errorf("the sidecar's answer cannot be read: %w", err)
	}
	if r.Truncated {
		fmt.Fprintf(out.Err, "millrace: only the first %d of %d bytes are kept\n", len(raw), r.Size)
	}
	_, err = out.Out.Write(raw)
	return err
}

type resubmitRejectedCmd struct {
	oneRejectedCmd

	File string `arg:"" optional:"" default:"-" help:"File with the corrected record; - is the standard input."`
}

// Run publishes a corrected record.
func (c *resubmitRejectedCmd) Run(ctx context.Context, out output.Streams) error {
	record, err := readAll(c.File)
	if err != nil {
		return err
	}
	if !json.Valid(record) {
		return usage.Errorf("the corrected record is no JSON")
	}
	return c.do(ctx, out, http.MethodPost, "/resubmit", record, "corrected record published")
}

func readAll(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}

type deleteRejectedCmd struct {
	oneRejectedCmd
	output.Confirm

	Reason string `placeholder:"TEXT" help:"Reason, kept in the journal."`
}

// Run removes a rejected record from the list.
func (c *deleteRejectedCmd) Run(ctx context.Context, out output.Streams) error {
	if err := c.Ask(out, "Remove %s from the list?", c.name()); err != nil {
		return err
	}
	return c.do(ctx, out, http.MethodDelete, "", reasonBody(c.Reason), "removed from the list")
}

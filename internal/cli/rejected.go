package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

type rejectedCmd struct {
	List     listRejectedCmd     `cmd:"" default:"withargs" aliases:"ls" set:"limit=25" help:"List rejected records by stream, the newest of each first."`
	Show     showRejectedCmd     `cmd:"" aliases:"get" help:"Show one rejected record with its reason."`
	Resubmit resubmitRejectedCmd `cmd:"" help:"Publish a corrected record in place of a rejected one."`
	Delete   deleteRejectedCmd   `cmd:"" aliases:"rm" help:"Remove a record from the list."`
}

const rejectedPath = "/api/rejected"

// bytesOf returns the record as it came.
func bytesOf(r *answer.RejectedRecord) ([]byte, error) {
	if r.Encoding == "base64" {
		return base64.StdEncoding.DecodeString(r.Body)
	}
	return []byte(r.Body), nil
}

var rejectedRows = rows[answer.RejectedRecord]{[]output.Column{output.Plain("STREAM"), output.Plain("OFFSET"), output.Plain("BYTES"), output.Text("REASON"), output.Text("RECORD")},
	func(r *answer.RejectedRecord) []any { return []any{r.Stream, r.Offset, r.Size, r.Reason, r.Body} }}

type listRejectedCmd struct {
	apiFlags

	Stream string `placeholder:"STREAM" help:"Only records of this stream."`
	pageFlags
}

// Run lists rejected records.
func (c *listRejectedCmd) Run(ctx context.Context, out output.Streams) error {
	return rejectedRows.getPage(ctx, out, &c.apiFlags, &c.pageFlags, rejectedPath, given("stream", c.Stream))
}

// rejectedRecordCmd is about one rejected record.
type rejectedRecordCmd struct {
	apiFlags

	Stream string `arg:"" help:"The record's stream."`
	Offset int64  `arg:"" help:"The offset of the record in its stream or queue."`
}

func (c *rejectedRecordCmd) path() string {
	return rejectedPath + "/" + apiclient.Segment(c.Stream) + "/" + strconv.FormatInt(c.Offset, 10)
}

func (c *rejectedRecordCmd) about() string {
	return fmt.Sprintf("rejected record %d of %s", c.Offset, c.Stream)
}

func (c *rejectedRecordCmd) action(method, path string, body []byte, done string) action {
	return action{
		Request: apiclient.Request{Method: method, Path: c.path() + path, Body: body}, about: c.about(),
		did: fields{"stream": c.Stream, "offset": c.Offset, "done": done}, said: c.about() + ": " + done,
	}
}

type showRejectedCmd struct {
	rejectedRecordCmd

	Raw bool `help:"Print the record itself, byte for byte."`
}

// Run prints one rejected record.
func (c *showRejectedCmd) Run(ctx context.Context, out output.Streams) error {
	body, err := c.APIClient().Do(ctx, apiclient.Request{Path: c.path()})
	if err != nil {
		return named(c.about(), err)
	}
	if !c.Raw {
		return c.Printer(out).Facts(body)
	}
	r, err := apiclient.DecodeStrict[answer.RejectedRecord](body)
	if err != nil {
		return err
	}
	raw, err := bytesOf(r)
	if err != nil {
		return named("the sidecar's answer cannot be read", err)
	}
	if r.Truncated {
		fmt.Fprintf(out.Err, "millrace: only the first %d of %d bytes are kept\n", len(raw), r.Size)
	}
	_, err = out.Out.Write(raw)
	return err
}

type resubmitRejectedCmd struct {
	rejectedRecordCmd

	File string `arg:"" optional:"" default:"-" help:"File with the corrected record; - is the standard input."`
}

// Run publishes a corrected record.
func (c *resubmitRejectedCmd) Run(ctx context.Context, out output.Streams) error {
	record, err := readAll(out, c.File)
	if err != nil {
		return err
	}
	if !json.Valid(record) {
		return usage.Errorf("the corrected record is no JSON")
	}
	return c.act(ctx, out, c.action(http.MethodPost, "/resubmit", record, "corrected record published"))
}

func readAll(out output.Streams, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(out.In)
	}
	return os.ReadFile(file)
}

type deleteRejectedCmd struct {
	rejectedRecordCmd
	output.Confirm
	reasonFlag
}

// Run removes a rejected record from the list.
func (c *deleteRejectedCmd) Run(ctx context.Context, out output.Streams) error {
	if err := c.Ask(out, "Remove %s from the list?", c.about()); err != nil {
		return err
	}
	return c.act(ctx, out, c.action(http.MethodDelete, "", c.body(), "removed from the list"))
}

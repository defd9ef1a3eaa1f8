package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
)

type rejectedCmd struct {
	List     listRejectedCmd     `cmd:"" default:"withargs" help:"List them by stream, the newest of each first."`
	Show     showRejectedCmd     `cmd:"" help:"Show one with its reason."`
	Resubmit resubmitRejectedCmd `cmd:"" help:"Publish a mended record in the place of one."`
	Delete   deleteRejectedCmd   `cmd:"" help:"Take one off the list."`
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

func (r *rejectedRecord) cells() []string {
	return []string{r.Stream, strconv.FormatInt(r.Offset, 10), strconv.FormatInt(r.Size, 10), r.Reason, short(r.Body)}
}

type listRejectedCmd struct {
	lookSettings

	Stream string `placeholder:"STREAM" help:"Only this stream's."`
	Limit  int    `default:"25" help:"How many at most, up to 500."`
	Page   int64  `default:"1" help:"Which page of them."`
}

// Run lists rejected records.
func (c *listRejectedCmd) Run(ctx context.Context, out output) error {
	query := url.Values{"page": {strconv.FormatInt(c.Page, 10)}, "page_size": {strconv.Itoa(c.Limit)}}
	setGiven(query, map[string]string{"stream": c.Stream})
	titles := []string{"STREAM", "OFFSET", "BYTES", "REASON", "RECORD"}
	return look(ctx, out, &c.lookSettings, rejectedPath, query, printPage(c.Page, titles, (*rejectedRecord).cells))
}

// oneRejectedCmd is about one rejected record.
type oneRejectedCmd struct {
	clientSettings

	Stream string `arg:"" help:"The record's stream."`
	Offset int64  `arg:"" help:"Its offset there."`
}

func (c *oneRejectedCmd) path() string {
	return rejectedPath + "/" + segment(c.Stream) + "/" + strconv.FormatInt(c.Offset, 10)
}

func (c *oneRejectedCmd) name() string {
	return fmt.Sprintf("rejected record %d of %s", c.Offset, c.Stream)
}

// do calls the API on the record and says what that did.
func (c *oneRejectedCmd) do(ctx context.Context, out output, method, action string, send []byte, done string) error {
	if _, err := c.client().do(ctx, method, c.path()+action, nil, send); err != nil {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	_, err := fmt.Fprintf(out.Out, "%s: %s\n", c.name(), done)
	return err
}

type showRejectedCmd struct {
	oneRejectedCmd

	Raw bool `help:"Print the record itself, byte for byte."`
}

// Run prints one rejected record.
func (c *showRejectedCmd) Run(ctx context.Context, out output) error {
	body, err := c.client().do(ctx, http.MethodGet, c.path(), nil, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	if !c.Raw {
		return printJSON(out.Out, body)
	}
	var r rejectedRecord
	if err := json.Unmarshal(body, &r); err != nil {
		return unreadable(err)
	}
	raw, err := r.bytes()
	if err != nil {
		return unreadable(err)
	}
	if r.Truncated {
		fmt.Fprintf(out.Err, "millrace: only the first %d of %d bytes are kept\n", len(raw), r.Size)
	}
	_, err = out.Out.Write(raw)
	return err
}

type resubmitRejectedCmd struct {
	oneRejectedCmd

	File string `arg:"" optional:"" default:"-" help:"A file with the mended record; - is the standard input."`
}

// Run publishes a mended record.
func (c *resubmitRejectedCmd) Run(ctx context.Context, out output) error {
	record, err := readAll(c.File)
	if err != nil {
		return err
	}
	if !json.Valid(record) {
		return errors.New("the mended record is no JSON")
	}
	return c.do(ctx, out, http.MethodPost, "/resubmit", record, "published in its mended form")
}

func readAll(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}

type deleteRejectedCmd struct {
	oneRejectedCmd

	Reason string `placeholder:"TEXT" help:"Why; the journal keeps it."`
}

// Run takes a rejected record off the list.
func (c *deleteRejectedCmd) Run(ctx context.Context, out output) error {
	return c.do(ctx, out, http.MethodDelete, "", reasonBody(c.Reason), "off the list")
}

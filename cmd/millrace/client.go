package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// client calls the REST API of a running sidecar.
type client struct {
	base          string // http://host:port, and the prefix
	authorization string
	as            string // who signs in, and what says so
	fault         error  // why it cannot be used
	http          http.Client
	header        http.Header // of every request
}

// with has a client send headers.
func (c *client) with(header http.Header) *client {
	c.header = header
	return c
}

const clientTimeout = 30 * time.Second

// apiError is the API's refusal.
type apiError struct {
	Status  int     `json:"-"`
	Code    string  `json:"error"`
	Reason  string  `json:"reason"`
	Offsets []int64 `json:"offsets"` // of those that have the jid that was asked for
	body    []byte
}

func (e *apiError) Error() string {
	said := e.Reason
	if said == "" {
		said = strings.ReplaceAll(e.Code, "_", " ")
	}
	if said == "" {
		said = fmt.Sprintf("the sidecar answered %d %s", e.Status, http.StatusText(e.Status))
	}
	if len(e.Offsets) > 0 {
		said += " (--offset picks one: " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(e.Offsets)), ", "), "[]") + ")"
	}
	return said
}

// do calls the API. path is escaped already, send is nil or a JSON body. The answer's body is returned as it is.
func (c *client) do(ctx context.Context, method, path string, query url.Values, send []byte) ([]byte, error) {
	defer c.http.CloseIdleConnections()
	answer, err := c.begin(ctx, method, path, query, send)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return readWhole(answer)
}

// stream calls the API for an answer that may take long, which the caller reads and closes.
func (c *client) stream(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	c.http.Timeout = 0
	return c.begin(ctx, http.MethodGet, path, query, nil)
}

// begin calls the API and gives an answer that is no refusal, to be read.
func (c *client) begin(ctx context.Context, method, path string, query url.Values, send []byte) (io.ReadCloser, error) {
	req, err := c.request(ctx, method, path, query, send)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	refusal := &apiError{Status: resp.StatusCode}
	if refusal.body, err = readWhole(resp.Body); err != nil {
		return nil, err
	}
	_ = json.Unmarshal(refusal.body, refusal) // what is no JSON is told by its status
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, fmt.Errorf("sign in to the sidecar at %s as %s: %w", c.base, c.as, refusal)
	}
	return nil, refusal
}

func readWhole(answer io.Reader) ([]byte, error) {
	body, err := io.ReadAll(answer)
	if err != nil {
		return nil, brokeOff(err)
	}
	return body, nil
}

func brokeOff(err error) error { return fmt.Errorf("the sidecar's answer broke off: %w", err) }

func (c *client) request(ctx context.Context, method, path string, query url.Values, send []byte) (*http.Request, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(send))
	if err != nil {
		return nil, usage.Errorf("invalid --http-addr %q: use host:port", strings.TrimPrefix(c.base, "http://"))
	}
	if c.authorization != "" {
		req.Header.Set("Authorization", c.authorization)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if send != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

func (c *client) unreachable(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no sidecar answers at %s: start one (millrace serve, or millrace up), or say where it is with --http-addr or --api-url", c.base)
	}
	return fmt.Errorf("ask the sidecar at %s: %w", c.base, err)
}

// segment escapes one part of a path, also parts that would otherwise mean another folder.
func segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

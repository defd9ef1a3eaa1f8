package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

// Client calls the API of one sidecar.
type Client struct {
	HTTP http.Client

	base          string // http://host:port and the prefix
	at            string // the same as users know it
	authorization string
	as            string // who signs in, and which flag says so
	fault         error  // why no request can be made
}

const timeout = 30 * time.Second

// Credentials are what a client signs in with.
type Credentials struct {
	Authorization string // the header
	As            string // in errors: who signs in, and which flag says so
}

// Address is where the API is.
type Address struct {
	Base   string // http://host:port and the prefix
	Socket string // a socket in the file system, if it is reached over one
}

// At returns the address of an API that listens on host:port or unix:PATH.
func At(scheme, addr, prefix string) Address {
	if socket, ok := hosts.SocketPath(addr); ok {
		return Address{Base: scheme + "://localhost" + prefix, Socket: socket}
	}
	return Address{Base: scheme + "://" + addr + prefix}
}

// String returns the address as users know it.
func (a Address) String() string {
	if a.Socket != "" {
		return "unix:" + a.Socket
	}
	return a.Base
}

// New returns a client of the API at an address. If err is not nil, every request returns it.
func New(a Address, c Credentials, err error) *Client {
	if err == nil && c.Authorization != "" && !mayCarrySecrets(a.Base) {
		err = usage.Errorf("no password is sent to %s without TLS: use https:// in --api-url", a.Base)
	}
	client := &Client{base: a.Base, at: a.String(), authorization: c.Authorization, as: c.As, fault: err, HTTP: http.Client{Timeout: timeout}}
	if a.Socket != "" {
		var d net.Dialer
		client.HTTP.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", a.Socket) }}
	}
	return client
}

// Address returns the address of the API as users know it.
func (c *Client) Address() string { return c.at }

// mayCarrySecrets reports whether no other machine can read what is sent to an address.
func mayCarrySecrets(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return true // the request will fail
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Error is the API's refusal.
type Error struct {
	answer.Refusal
	Status int `json:"-"`
	body   []byte
}

func (e *Error) Error() string {
	text := e.Reason
	if text == "" {
		text = strings.ReplaceAll(e.Code, "_", " ")
	}
	if text == "" {
		text = fmt.Sprintf("the sidecar answered %d %s", e.Status, http.StatusText(e.Status))
	}
	if len(e.Offsets) > 0 {
		text += " (--offset picks one: " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(e.Offsets)), ", "), "[]") + ")"
	}
	return text
}

// Request is a request to the API.
type Request struct {
	Method string // GET if empty
	Path   string // escaped
	Query  url.Values
	Header http.Header
	Body   []byte // JSON, or nil
}

// Do makes a request and returns the answer's body as it is.
func (c *Client) Do(ctx context.Context, r Request) ([]byte, error) {
	defer c.HTTP.CloseIdleConnections()
	return c.Fetch(ctx, r)
}

// Fetch is Do for one of many requests: it keeps the connection for the next one. The caller calls
// HTTP.CloseIdleConnections at the end.
func (c *Client) Fetch(ctx context.Context, r Request) ([]byte, error) {
	body, err := c.open(ctx, r)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readWhole(body)
}

// Get asks for something and decodes the answer.
func Get[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	body, err := c.Do(ctx, Request{Path: path, Query: query})
	if err != nil {
		return nil, err
	}
	return Decode[T](body)
}

// Stream makes a request whose answer may take long. The caller reads and closes it.
func (c *Client) Stream(ctx context.Context, r Request) (io.ReadCloser, error) {
	c.HTTP.Timeout = 0
	return c.open(ctx, r)
}

// open makes a request and returns the body of an answer that is no refusal.
func (c *Client) open(ctx context.Context, r Request) (io.ReadCloser, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	refusal := &Error{Status: resp.StatusCode}
	if refusal.body, err = readWhole(resp.Body); err != nil {
		return nil, err
	}
	_ = json.Unmarshal(refusal.body, refusal) // a body that is no JSON says nothing beside the status
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, fmt.Errorf("sign in to the sidecar at %s as %s: %w", c.at, c.as, refusal)
	}
	return nil, refusal
}

func (c *Client) request(ctx context.Context, r Request) (*http.Request, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	address := c.base + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, bytes.NewReader(r.Body))
	if err != nil {
		return nil, usage.Errorf("invalid --http-addr %q: use host:port or unix:/path", strings.TrimPrefix(c.base, "http://"))
	}
	if c.authorization != "" {
		req.Header.Set("Authorization", c.authorization)
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

func (c *Client) unreachable(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("no sidecar answers at %s: start one (millrace serve, or millrace up), "+
			"or say where it is with --http-addr or --api-url", c.at)
	}
	return fmt.Errorf("ask the sidecar at %s: %w", c.at, err)
}

func readWhole(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, Interrupted(err)
	}
	return body, nil
}

// Interrupted returns the error for an answer that ended before it was complete.
func Interrupted(err error) error { return fmt.Errorf("the sidecar's answer broke off: %w", err) }

// Decode reads an answer. A member that is not of the expected type is left empty.
func Decode[T any](body []byte) (*T, error) {
	decoded, err := DecodeStrict[T](body)
	if errors.As(err, new(*json.UnmarshalTypeError)) {
		return decoded, nil
	}
	return decoded, err
}

// DecodeStrict is Decode that returns an error for a member of another type.
func DecodeStrict[T any](body []byte) (*T, error) {
	decoded := new(T)
	if err := json.Unmarshal(body, decoded); err != nil {
		return decoded, fmt.Errorf("the sidecar's answer cannot be read: %w", err)
	}
	return decoded, nil
}

// Segment escapes one segment of a path, also one that would otherwise name another folder.
func Segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	managementTimeout = 15 * time.Second
	managementMaxBody = 256 << 20
)

// Management is the broker's HTTP API as one user sees it, for one virtual host. It is safe for concurrent use.
//
// It is spoken with the standard library: rabbit-hole's calls take no context, and its types refuse some of what LavinMQ answers.
type Management struct {
	base     string
	user     string
	password string
	vhost    string
	host     string
	http     *http.Client
	log      *slog.Logger
	features Features

	noConsumerTimeout atomic.Bool // this broker refused a policy with consumer-timeout
}

// StatusError is an answer of the management API other than success.
type StatusError struct {
	Status int
	Reason string // the broker's words
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d %s", e.Status, e.Reason) }

// OpenManagement finds out what answers at a URL like http://user:password@host:15672. log may be nil.
func OpenManagement(ctx context.Context, rawURL, vhost string, log *slog.Logger) (*Management, error) {
	m, err := NewManagement(rawURL, vhost, log)
	if err != nil {
		return nil, err
	}
	overview, err := m.Overview(ctx)
	if err != nil {
		m.Close()
		return nil, err
	}
	m.features = FeaturesOf(overview.Product, overview.Version)
	return m, nil
}

// NewManagement is OpenManagement that asks nothing yet, and so does not know the broker's features: enough to ask who users are.
func NewManagement(rawURL, vhost string, log *slog.Logger) (*Management, error) {
	base, user, password, err := splitCredentials(rawURL)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.Default()
	}
	parsed, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	return &Management{
		base: base, user: user, password: password, vhost: vhost, host: parsed.Hostname(), log: log,
		http: &http.Client{Timeout: managementTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute}},
	}, nil
}

// As is the same API as another user sees it, for asking whether a password is right and what its owner may.
func (m *Management) As(user, password string) *Management {
	return &Management{base: m.base, user: user, password: password, vhost: m.vhost, host: m.host, http: m.http, log: m.log, features: m.features}
}

// Close lets go of idle connections, also of those that As shares.
func (m *Management) Close() { m.http.CloseIdleConnections() }

// Features is what this broker can do.
func (m *Management) Features() Features { return m.features }

func (m *Management) get(ctx context.Context, path string, into any) error {
	return m.do(ctx, http.MethodGet, path, nil, into)
}

func (m *Management) put(ctx context.Context, path string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("broker: management API: %w", err)
	}
	return m.do(ctx, http.MethodPut, path, raw, nil)
}

// do calls the API. path has its parts escaped by segment.
func (m *Management) do(ctx context.Context, method, path string, body []byte, into any) error {
	err := m.roundTrip(ctx, method, path, body, into)
	if err != nil {
		return fmt.Errorf("broker: management API: %s %s: %w", method, path, err)
	}
	return nil
}

func (m *Management) roundTrip(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, m.base+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("malformed address")
	}
	req.SetBasicAuth(m.user, m.password)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := m.http.Do(req)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			return inner.Err // without the address, which the caller names without credentials
		}
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, managementMaxBody))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return &StatusError{Status: resp.StatusCode, Reason: refusal(raw)}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func refusal(raw []byte) string {
	var said struct {
		Error  string `json:"error"`
		Reason any    `json:"reason"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return strings.TrimSpace(fmt.Sprintf("%.200s", raw))
	}
	if reason, isText := said.Reason.(string); isText && reason != "" {
		return strings.TrimSpace(reason)
	}
	return said.Error
}

func segment(s string) string { return url.PathEscape(s) }

func statusOf(err error) int {
	var answer *StatusError
	if errors.As(err, &answer) {
		return answer.Status
	}
	return 0
}

// tags are a user's, as RabbitMQ (array) or LavinMQ (comma-joined string) writes them.
type tags []string

func (t *tags) UnmarshalJSON(raw []byte) error {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		*t = list
		return nil
	}
	var joined string
	if err := json.Unmarshal(raw, &joined); err != nil {
		return err
	}
	*t = nil
	for tag := range strings.SplitSeq(joined, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			*t = append(*t, tag)
		}
	}
	return nil
}

// object is a JSON object that some brokers write as [] when it is empty.
type object map[string]any

func (o *object) UnmarshalJSON(raw []byte) error {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		m = nil
	}
	*o = m
	return nil
}

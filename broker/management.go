package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// Management is a client of the broker's HTTP API, for one user and one virtual host. It is safe
// for concurrent use.
//
// It uses the standard library, because the calls of rabbit-hole take no context, and its types
// reject some of LavinMQ's answers.
type Management struct {
	hosts    *managementHosts
	user     string
	password string
	vhost    string
	log      *slog.Logger
	features Features

	noConsumerTimeout atomic.Bool // this broker refused a policy with consumer-timeout
}

// NewManagement is OpenManagement without a request. The client does not know the broker's
// features. It can check users.
func NewManagement(rawURL, vhost string, log *slog.Logger) (*Management, error) {
	u, user, password, err := splitCredentials(rawURL)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.Default()
	}
	return &Management{hosts: &managementHosts{url: u}, user: user, password: password, vhost: vhost, log: log}, nil
}

// Near makes m ask the host first to which the AMQP connections of an order go. It must be called
// before the first request.
func (m *Management) Near(amqp *hosts.Order) { m.hosts.order.Near = amqp }

// As returns a client for another user, to check the user's password and permissions.
func (m *Management) As(user, password string) *Management {
	return &Management{hosts: m.hosts, user: user, password: password, vhost: m.vhost, log: m.log, features: m.features}
}

// Close closes idle connections, also those of clients that As returned.
func (m *Management) Close() { m.hosts.close() }

// VHost returns the virtual host of m.
func (m *Management) VHost() string { return m.vhost }

// Reconnect makes further requests use new connections. LavinMQ passes a connection on to the node
// that leads. If that node freezes, the connection never answers again.
func (m *Management) Reconnect() { m.hosts.close() }

// Features returns what this broker can do.
func (m *Management) Features() Features { return m.features }

func (m *Management) get(ctx context.Context, path string, into any) error {
	_, err := m.getFrom(ctx, path, into)
	return err
}

// getFrom is get, and returns the host that answered.
func (m *Management) getFrom(ctx context.Context, path string, into any) (hosts.Target, error) {
	return m.do(ctx, http.MethodGet, path, nil, into)
}

func (m *Management) put(ctx context.Context, path string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("broker: management API: %w", err)
	}
	_, err = m.do(ctx, http.MethodPut, path, raw, nil)
	return err
}

// do calls the API. The parts of path must be escaped by segment.
func (m *Management) do(ctx context.Context, method, path string, body []byte, into any) (hosts.Target, error) {
	a, err := m.hosts.ask(ctx, request{method: method, path: path, body: body, user: m.user, password: m.password})
	if err == nil {
		err = a.err
	}
	if err == nil && into != nil {
		err = json.Unmarshal(a.body, into)
	}
	if err != nil {
		return a.from, fmt.Errorf("broker: management API: %s %s: %w", method, path, err)
	}
	return a.from, nil
}

func segment(s string) string { return url.PathEscape(s) }

// tags are the tags of a user. RabbitMQ sends an array, and LavinMQ a comma-separated string.
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

// object is a JSON object. Some brokers send [] in place of an empty one.
type object map[string]any

func (o *object) UnmarshalJSON(raw []byte) error {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		m = nil
	}
	*o = m
	return nil
}

// SilentHosts returns the hosts of the management API that do not answer, if others do. LavinMQ
// does not list its followers as nodes, but each of them answers here.
func (m *Management) SilentHosts(ctx context.Context) []string {
	all := m.hosts.addresses()
	var silent []string
	for i, err := range m.hosts.each(ctx, all, m.hosts.greet) {
		if err != nil {
			silent = append(silent, all[i])
		}
	}
	if len(silent) == len(all) {
		return nil
	}
	return silent
}

package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// managementPatience is how long the first host may take before the next one is asked too.
const managementPatience = 3 * time.Second

// managementHosts are the hosts of a management API, with their connections. All clients of the API
// share them.
type managementHosts struct {
	url   hosts.URL // without credentials
	order hosts.Order
	proof prover // nil accepts hosts of any broker

	mu      sync.Mutex
	clients map[hosts.Target]*http.Client
}

// prover finds out which hosts belong to the broker.
type prover interface {
	prove(ctx context.Context, to hosts.Target) error
	set(to hosts.Target, proven bool)
}

// prove returns nil if a host is proven to belong to the broker.
func (h *managementHosts) prove(ctx context.Context, to hosts.Target) error {
	if h.proof == nil {
		return nil
	}
	return h.proof.prove(ctx, to)
}

// addresses returns the hosts with their ports.
func (h *managementHosts) addresses() []string {
	if h.url.Scheme == "https" {
		return h.url.Addresses("443")
	}
	return h.url.Addresses("80")
}

// client returns the HTTP client for an address. It checks the certificate against the host's name.
func (h *managementHosts) client(to hosts.Target) *http.Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.clients[to]; c != nil {
		return c
	}
	if h.clients == nil {
		h.clients = map[hosts.Target]*http.Client{}
	}
	c := &http.Client{Timeout: managementTimeout, Transport: &http.Transport{
		MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == to.Host { // not the target of a redirect
				address = to.Address
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	h.clients[to] = c
	return c
}

func (h *managementHosts) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.clients {
		c.CloseIdleConnections()
	}
}

// request is a request to the management API.
type request struct {
	method, path   string // the parts of path are escaped
	body           []byte // nil for none
	user, password string
}

// answer is the answer of a host.
type answer struct {
	from hosts.Target
	body []byte
	date string // of the answer, by the host's clock
	err  error  // set if the status is not success
}

// ask sends a request to the hosts, and returns the first answer.
func (h *managementHosts) ask(ctx context.Context, r request) (answer, error) {
	return hosts.Race(ctx, &h.order, h.addresses(), hosts.Rules[answer]{Patience: managementPatience}, func(ctx context.Context, to hosts.Target) (answer, error) {
		return h.askOne(ctx, to, r)
	})
}

// greeting is a request that each host answers, for any user. It is not a HEAD: LavinMQ answers
// that with a body, which the next request on the connection would read.
var greeting = request{method: http.MethodGet, path: "/"}

// greet returns an error if a host does not answer.
func (h *managementHosts) greet(ctx context.Context, to hosts.Target) error {
	_, err := h.send(ctx, to, greeting)
	return err
}

// each asks all these hosts concurrently, and returns an error or nil for each.
func (h *managementHosts) each(ctx context.Context, all []string, ask func(context.Context, hosts.Target) error) []error {
	ctx, cancel := context.WithTimeout(ctx, managementPatience)
	defer cancel()
	errs := make([]error, len(all))
	var asking sync.WaitGroup
	for i, host := range all {
		asking.Go(func() { errs[i] = ask(ctx, hosts.Target{Host: host, Address: host}) })
	}
	asking.Wait()
	return errs
}

// askOne asks one host, once it is proven to belong to the broker. It returns an error if another
// host may do better: there was no answer, or the answer shows that the node is in trouble.
func (h *managementHosts) askOne(ctx context.Context, to hosts.Target, r request) (answer, error) {
	err := h.prove(ctx, to)
	switch {
	case err == nil:
		return h.send(ctx, to, r)
	case Unauthorized(err): // a refusal is an answer
		return answer{from: to, err: err}, nil
	}
	return answer{}, err
}

// send asks one host, of any broker.
func (h *managementHosts) send(ctx context.Context, to hosts.Target, r request) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, strings.TrimSuffix(h.url.At(to.Host), "/")+r.path, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, errors.New("malformed address")
	}
	if r.user != "" {
		req.SetBasicAuth(r.user, r.password)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := h.client(to).Do(req)
	if err != nil {
		if h.proof != nil && ctx.Err() == nil {
			h.proof.set(to, false) // another broker may answer there next
		}
		var inner *url.Error
		if errors.As(err, &inner) {
			return answer{}, inner.Err // without the URL; the caller adds the host
		}
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, managementMaxBody))
	switch {
	case err != nil:
		return answer{}, err
	case resp.StatusCode >= 500:
		return answer{}, &StatusError{Status: resp.StatusCode, Reason: refusal(raw)}
	case resp.StatusCode >= 300:
		err = &StatusError{Status: resp.StatusCode, Reason: refusal(raw)}
	}
	return answer{from: to, body: raw, date: resp.Header.Get("Date"), err: err}, nil
}

// splitCredentials separates the user and password from a management URL.
func splitCredentials(raw string) (u hosts.URL, user, password string, err error) {
	u, err = hosts.Parse(raw)
	if err != nil && !errors.Is(err, hosts.ErrMalformed) {
		return u, "", "", fmt.Errorf("broker: management URL: %w", err)
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return u, "", "", errors.New("broker: the management URL is malformed (http://user:password@host:port; reserved characters must be percent-encoded)")
	}
	if u.User != nil {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/api")
	u.RawPath = strings.TrimSuffix(strings.TrimSuffix(u.RawPath, "/"), "/api")
	return u, user, password, nil
}

const (
	managementTimeout = 15 * time.Second
	managementMaxBody = 256 << 20
)

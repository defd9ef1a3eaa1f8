package sidecar

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
)

// client keeps no connections open, because the process may be another one next time.
var client = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Overview returns the overview. ok is false while there is none. An error means that the process
// has ended.
func (p *Process) Overview() (o answer.Overview, ok bool, err error) {
	select {
	case <-p.exited:
		return o, false, fmt.Errorf("sidecar: millrace serve has ended: %w", p.err)
	default:
	}
	status, body, err := p.Do(http.MethodGet, "/api/overview", "")
	if err != nil || status != http.StatusOK {
		return o, false, nil //nolint:nilerr // it does not listen yet
	}
	return o, true, json.Unmarshal(body, &o)
}

// Do sends a request to the REST API. more are headers, each as a name and a value.
func (p *Process) Do(method, path, body string, more ...string) (status int, answer []byte, err error) {
	req, err := http.NewRequest(method, p.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(more); i += 2 {
		req.Header.Set(more[i], more[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// Ready reports whether the sidecar has reached the broker and read its streams.
func (p *Process) Ready() bool {
	status, _, err := p.Do(http.MethodGet, "/readyz", "")
	return err == nil && status == http.StatusOK
}

// Leads reports whether the sidecar leads, and does not know of a newer leader.
func (p *Process) Leads() bool {
	o, ok, err := p.Overview()
	return err == nil && ok && o.Scheduler.Leader && strings.HasPrefix(o.Leader.Identity, p.Identity+"/")
}

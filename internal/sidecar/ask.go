package sidecar

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Overview is the part of /api/overview that tests use.
type Overview struct {
	Now    float64 `json:"now"` // the sidecar's clock, in seconds since the epoch
	Leader struct {
		Identity string `json:"identity"`
	} `json:"leader"`
	Self struct {
		Leader      bool   `json:"leader"`
		Phase       string `json:"phase"`
		Unconfirmed int    `json:"unconfirmed"`
		Gap         string `json:"gap"`
	} `json:"scheduler"`
	Sets map[string]struct {
		Total int64 `json:"total"`
	} `json:"sets"`
	Views struct {
		Streams []struct {
			Stream string  `json:"stream"`
			Lag    float64 `json:"lag_seconds"`
		} `json:"streams"`
	} `json:"views"`
	Rejected map[string]struct {
		Ever int64 `json:"ever"`
	} `json:"rejected"`
	Journal struct {
		Void map[string]int64 `json:"void_records"`
	} `json:"journal"`
}

// client keeps no connections open, because the process may be another one next time.
var client = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Overview returns the overview. ok is false while there is none. An error means that the process
// has ended.
func (p *Process) Overview() (o Overview, ok bool, err error) {
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
	return err == nil && ok && o.Self.Leader && strings.HasPrefix(o.Leader.Identity, p.Identity+"/")
}

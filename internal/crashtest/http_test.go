package crashtest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

var client = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func ready(p *process) bool {
	resp, err := client.Get(p.url + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// leads tells whether the newest leader that a sidecar knows is itself.
func leads(p *process) bool {
	resp, err := client.Get(p.url + "/api/overview")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var overview struct {
		Leader struct {
			Identity string `json:"identity"`
		} `json:"leader"`
	}
	return json.NewDecoder(resp.Body).Decode(&overview) == nil && strings.HasPrefix(overview.Leader.Identity, p.name+"/")
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// vhost is an empty virtual host for one measurement.
type vhost struct {
	name       string
	amqpURL    string
	management string
	streamURL  string
}

func (b *bench) newVhost(ctx context.Context) (*vhost, error) {
	b.vhosts++
	v := &vhost{name: fmt.Sprintf("bench-%d", b.vhosts), management: b.broker.ManagementURL()}
	v.amqpURL = b.broker.AMQPURL() + v.name
	if b.broker.StreamURL() != "" {
		v.streamURL = b.broker.StreamURL() + v.name
	}
	if err := v.manage(ctx, http.MethodPut, "/api/vhosts/"+v.name, nil, nil); err != nil {
		return nil, err
	}
	all := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
	return v, v.manage(ctx, http.MethodPut, "/api/permissions/"+v.name+"/guest", all, nil)
}

func (v *vhost) delete(ctx context.Context) error {
	return v.manage(ctx, http.MethodDelete, "/api/vhosts/"+v.name, nil, nil)
}

// queues returns the names of all queues.
func (v *vhost) queues(ctx context.Context) (map[string]bool, error) {
	var found []struct {
		Name string `json:"name"`
	}
	if err := v.manage(ctx, http.MethodGet, "/api/queues/"+v.name+"?columns=name", nil, &found); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, q := range found {
		names[q.Name] = true
	}
	return names, nil
}

// manage calls the management API of the broker.
func (v *vhost) manage(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var body []byte
	if in != nil { // LavinMQ refuses the body null
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(v.management, "/")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("management API: %s %s: %s", method, path, resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

package devup

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/localbroker"
)

const (
	startTimeout   = 2 * time.Minute
	stopTimeout    = 20 * time.Second
	requestTimeout = 30 * time.Second
)

// startBroker starts the private broker on the usual ports, or on the next free ones.
func startBroker(ctx context.Context, dir string, log *slog.Logger) (*localbroker.Broker, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	unlock, err := lockPorts(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	cfg := localbroker.Config{Dir: filepath.Join(dir, "broker"), Log: log}
	for port, usual := range map[*int]int{&cfg.AMQPPort: 5672, &cfg.ManagementPort: 15672, &cfg.StreamPort: 5552} {
		free, err := localbroker.FreePort(usual)
		if err != nil {
			return nil, err
		}
		*port = free
	}
	return localbroker.Start(ctx, cfg)
}

func stopBroker(ctx context.Context, node *localbroker.Broker, live *output.Live) error {
	live.Printf("Stopping. The data stay for the next start.\n")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return node.Stop(ctx)
}

const (
	userName   = "millrace" // of the sidecar
	formerUser = "guest"    // the sidecar's in older versions: its records are in the journal
)

// makeUser makes the sidecar's user, with a new password, and the permissions and tags that a
// sidecar needs in production.
func makeUser(ctx context.Context, management string) (*url.Userinfo, error) {
	password, role := rand.Text(), connect.Sidecar
	role.Write = ".*" // delayed messages go to any exchange
	for _, put := range []struct {
		path string
		body map[string]string
	}{
		{"/api/users/" + userName, map[string]string{"password": password, "tags": strings.Join(connect.SidecarTags, ",")}},
		{"/api/permissions/%2F/" + userName, map[string]string{"configure": role.Configure, "write": role.Write, "read": role.Read}},
	} {
		if err := putJSON(ctx, management+put.path, put.body); err != nil {
			return nil, fmt.Errorf("make the broker user %s: %w", userName, err)
		}
	}
	return url.UserPassword(userName, password), nil
}

func putJSON(ctx context.Context, address string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Timeout: requestTimeout}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the management API answers %s", resp.Status)
	}
	return nil
}

// withUser returns a URL with another user.
func withUser(user *url.Userinfo, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.User = user
	return u.String()
}

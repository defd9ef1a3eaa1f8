package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/internal/connect"
)

// upUser is the broker user of the sidecar of `millrace up`. Before it had one, guest's records were in the journal.
const (
	upUser        = "millrace"
	upUsersBefore = "guest"
)

// makeUpUser makes that user, with a new password, and gives it the permissions and tags that a sidecar needs, as in production.
func makeUpUser(ctx context.Context, management string) (*url.Userinfo, error) {
	password := rand.Text()
	for _, put := range []struct {
		path string
		body map[string]string
	}{
		{"/api/users/" + upUser, map[string]string{"password": password, "tags": strings.Join(connect.SidecarTags, ",")}},
		{"/api/permissions/%2F/" + upUser, map[string]string{"configure": connect.Sidecar.Configure, "write": connect.Sidecar.Write, "read": connect.Sidecar.Read}},
	} {
		if err := putJSON(ctx, management+put.path, put.body); err != nil {
			return nil, fmt.Errorf("make the broker user %s: %w", upUser, err)
		}
	}
	return url.UserPassword(upUser, password), nil
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
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the management API answers %s", resp.Status)
	}
	return nil
}

// as is a URL with another user.
func as(user *url.Userinfo, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.User = user
	return u.String()
}

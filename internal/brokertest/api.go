package brokertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/stretchr/testify/require"
)

// client keeps no connections open, so that it leaves no goroutines behind.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// StatusError is an answer of the management API that is not 2xx.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Code, e.Text) }

// isMissing reports whether the requested object does not exist. LavinMQ answers 403 for a missing
// vhost.
func isMissing(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusForbidden)
}

// Do sends a request to the management API as the administrator. It reads the JSON answer into out,
// unless out is nil. The path begins with /api/.
func (v *Vhost) Do(t T, method, path string, in, out any) {
	t.Helper()
	require.NoError(t, call(t.Context(), v.server.management, method, path, in, out))
}

// Try is Do for a request that may fail (see StatusError).
func (v *Vhost) Try(ctx context.Context, method, path string, in, out any) error {
	return call(ctx, v.server.management, method, path, in, out)
}

func call(ctx context.Context, root url.URL, method, path string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("brokertest: encoding the body of %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, root.String()+path, body)
	if err != nil {
		return fmt.Errorf("brokertest: %s %s: %w", method, path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("brokertest: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("brokertest: reading the answer to %s %s: %w", method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("brokertest: %s %s: %w", method, path, &StatusError{resp.StatusCode, strings.TrimSpace(string(text))})
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("brokertest: decoding the answer to %s %s: %w", method, path, err)
	}
	return nil
}

package spectest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// publish publishes bytes as they are, through pika.
func publish(t *testing.T, c *client, exchange, key, body string, expiration ...string) {
	t.Helper()
	cmd := c.command(t.Context(), "raw", append([]string{"publish", exchange, key}, expiration...)...)
	cmd.Stdin = strings.NewReader(body)
	run(t, cmd)
}

// take waits for a message and acknowledges it.
func take(t *testing.T, c *client, queue string) string {
	t.Helper()
	return c.run(t, "raw", "ack", queue)
}

// reject waits for a message and rejects it.
func reject(t *testing.T, c *client, queue string) string {
	t.Helper()
	return c.run(t, "raw", "reject", queue)
}

func hasQueue(t *testing.T, v *brokertest.Vhost, name string) bool {
	t.Helper()
	var queues []struct{ Name string }
	v.Do(t, http.MethodGet, fmt.Sprintf("/api/queues/%s", v.Name), nil, &queues)
	for _, q := range queues {
		if q.Name == name {
			return true
		}
	}
	return false
}

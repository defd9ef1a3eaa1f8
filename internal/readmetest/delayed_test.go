package readmetest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestDelayedMessagesPage(t *testing.T) {
	blocks := readmeBlocks(t, "docs/delayed-messages.md")
	s := serve(t, "--deliver-to", ".*")
	wrote, err := s.program(t, blocks, "delay.py").CombinedOutput()
	require.NoError(t, err, "%s", wrote)
	require.Equal(t, "orders order.unpaid 7 {\"order\": 42}\n", string(wrote))

	record := fmt.Sprintf(`{"type":"scheduled_job","jid":"later","scheduled_at":%d,"job":{"jid":"later","class":"millrace.Message",
		"queue":"millrace.messages","args":[{"exchange":"orders","routing_key":"order.late"}]}}`, time.Now().Add(time.Hour).Unix())
	s.vhost.Publish(t, "", "scheduled_jobs", amqp.Publishing{Body: []byte(record)})
	brokertest.Eventually(t, func() bool {
		status, _ := s.get("/api/scheduled-jobs/later")
		return strings.Contains(status, "order.late")
	}, "the message waits")
	for _, line := range commands(blocks["look.sh"]) {
		require.NotEmpty(t, s.run(t, strings.ReplaceAll(line, "JID", "later")))
	}
	brokertest.Eventually(t, func() bool { return s.vhost.QueueLength(t, "reminders") == 1 }, "it is delivered at once")

	for _, line := range commands(blocks["serve.sh"]) {
		require.Contains(t, s.run(t, strings.Replace(line, " serve ", " config ", 1)), "deliver-to: orders")
	}
	status, _ := s.request(http.MethodGet, "/api/processes")
	require.Contains(t, status, "messages")
}

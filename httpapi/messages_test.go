package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// ofMessage makes the job of a record one that delivers a message.
func ofMessage(record, message string) string {
	record = strings.Replace(record, `"args":[1]`, `"args":[]`, 1)
	return strings.NewReplacer(`"class":"Mail"`, `"class":"millrace.Message"`, `"class":"C"`, `"class":"millrace.Message"`, `"args":[]`, `"args":[`+message+`]`).Replace(record)
}

func TestMessagesAreCountedByExchange(t *testing.T) {
	w := newWorld(t)
	require.JSONEq(t, `{"items":[],"unsearched":0,"complete":true}`, w.get("/api/messages/exchanges").body)
	w.add(wire.ScheduledJobs, scheduled("other", 1_999_999_999))
	for i := range 3 {
		w.add(wire.ScheduledJobs, ofMessage(scheduled(fmt.Sprint("o", i), float64(2_000_000_005-i)), `{"exchange":"orders","body":"b"}`))
	}
	w.add(wire.ScheduledJobs, ofMessage(scheduled("d", 2_000_000_009), `{"exchange":"","routing_key":"q"}`))
	w.add(wire.ScheduledJobs, ofMessage(scheduled("large", 2_000_000_000), `{"exchange":"orders","body":"`+strings.Repeat("x", 70<<10)+`"}`))
	w.add(wire.Retries, ofMessage(retry("r", 2_000_000_001, "millrace.messages", "C", "E"), `{"exchange":"orders"}`))
	w.add(wire.DeadJobs, ofMessage(dead("x", 1_000_000_000), `{"exchange":"shop"}`))
	require.JSONEq(t, `{"items":[{"exchange":"orders","scheduled":3,"retrying":1,"dead":0,"next_at":2000000001},
		{"exchange":"","scheduled":1,"retrying":0,"dead":0,"next_at":2000000009},
		{"exchange":"shop","scheduled":0,"retrying":0,"dead":1,"next_at":null}],"unsearched":1,"complete":true}`, w.get("/api/messages/exchanges").body)

	require.Contains(t, w.get("/metrics").body, `millrace_set_messages{exchange="orders",set="scheduled",vhost="/"} 3`)

	many := newWorld(t)
	for i := range 501 {
		many.add(wire.DeadJobs, ofMessage(dead(fmt.Sprint(i), 1_000_000_000), fmt.Sprintf(`{"exchange":"x%d"}`, i)))
	}
	require.Contains(t, many.get("/api/messages/exchanges").body, `"complete":false`)
	require.NotContains(t, many.get("/metrics").body, "millrace_set_messages")
}

func TestDelayMessage(t *testing.T) {
	w := newSecured(t)
	a := w.as("management", http.MethodPost, "/api/messages", `{"exchange":"orders","routing_key":"<a>","body":"b","properties":{"headers":{"n":9007199254740993,"f":1.0}},"at":2000000000,"jid":"m1","retry":3,"tags":["x"]}`)
	require.Equal(t, http.StatusCreated, a.StatusCode, a.body)
	require.JSONEq(t, `{"jid":"m1"}`, a.body)
	require.Equal(t, "/api/jobs/m1", a.Header.Get("Location"))
	m := w.published[0]
	require.Equal(t, []string{"", wire.ScheduledJobs, "m1"}, []string{m.Exchange, m.Key, m.MessageID})
	require.Equal(t, `{"type":"scheduled_job","jid":"m1","scheduled_at":2000000000,"job":{"args":[{"body":"b","exchange":"orders","properties":{"headers":{"n":9007199254740993,"f":1.0}},"routing_key":"<a>"}],`+
		`"at":2000000000,"class":"millrace.Message","jid":"m1","queue":"millrace.messages","retry":3,"tags":["x"]}}`, string(m.Body))

	a = w.as("management", http.MethodPost, "/api/messages", `{"exchange":"","routing_key":"q","body_base64":"AP8=","in":60.5}`)
	require.Equal(t, http.StatusCreated, a.StatusCode, a.body)
	require.Equal(t, "1700000060.5", gjson.GetBytes(w.published[1].Body, "scheduled_at").Raw)
	for _, m := range w.published {
		w.add(wire.ScheduledJobs, string(m.Body))
	}
	require.JSONEq(t, `{"items":[{"exchange":"","scheduled":1,"retrying":0,"dead":0,"next_at":1700000060.5},
		{"exchange":"orders","scheduled":1,"retrying":0,"dead":0,"next_at":2000000000}],"unsearched":0,"complete":true}`, w.as("management", http.MethodGet, "/api/messages/exchanges", "").body)
}

func TestDelayMessageOnce(t *testing.T) {
	w := newWorld(t)
	w.reply = wire.Reply{Status: wire.StatusOK, JID: "m1"}
	delay := func(body string) answer {
		r := request(http.MethodPost, "/api/messages", body)
		r.Header.Set("Idempotency-Key", "order-7")
		return w.send(r)
	}
	a := delay(`{"exchange":"orders","at":"2033-05-18T03:33:20Z"}`)
	require.Equal(t, http.StatusCreated, a.StatusCode, a.body)
	require.JSONEq(t, `{"jid":"m1"}`, a.body)
	require.Equal(t, `{"args":[{"exchange":"orders"}],"at":"2033-05-18T03:33:20Z","class":"millrace.Message","queue":"millrace.messages"}`, string(w.commands[0].Job))
	require.InDelta(t, 2e9, *w.commands[0].At, 0)
	require.Contains(t, delay(`{"exchange":"orders","in":5}`).problem(t, http.StatusBadRequest, "bad_request").Reason, "needs at in place of in")
	require.Empty(t, w.published)
}

func TestInvalidMessagesAreRefused(t *testing.T) {
	w := newWorld(t)
	for body, why := range map[string]string{
		`[]`: "must be a message", `null`: "must be a message", `{`: "not valid JSON", `{"in":5}`: "has no exchange", `{"exchange":"e"}`: "member at or in is missing",
		`{"exchange":"e","at":2000000000,"in":5}`: "one of them is enough", `{"exchange":"e","in":-1}`: "number of seconds", `{"exchange":"e","in":"5"}`: "number of seconds",
		`{"exchange":"e","in":1e10}`: "number of seconds", `{"exchange":"e","at":"soon"}`: "member at must be", `{"exchange":"e","in":5,"queue":"q"}`: `unknown field "queue"`,
		`{"Exchange":"e","in":5}`: "unknown member", `{"exchange":"e","in":5,"body":"","body_base64":""}`: "body and body_base64", `{"exchange":"e","in":5,"jid":""}`: "jid is empty",
		`{"exchange":"e","in":5,"properties":{"priority":256}}`: "properties.priority", `{"exchange":"e","in":5,"properties":{"expiration":"1s"}}`: "expiration",
		`{"exchange":"jobs.direct","in":5}`: "only Millrace publishes", `{"exchange":"","routing_key":"dead_jobs","in":5}`: "only Millrace publishes", `{"exchange":"e","in":5,"retry":"x"}`: "retry",
	} {
		require.Contains(t, w.do(http.MethodPost, "/api/messages", body).problem(t, http.StatusBadRequest, "bad_request").Reason, why, body)
	}
	require.Empty(t, w.published)
}

package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

	many := newWorld(t)
	for i := range 501 {
		many.add(wire.DeadJobs, ofMessage(dead(fmt.Sprint(i), 1_000_000_000), fmt.Sprintf(`{"exchange":"x%d"}`, i)))
	}
	require.Contains(t, many.get("/api/messages/exchanges").body, `"complete":false`)
}

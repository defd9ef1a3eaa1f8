package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func (w *world) enqueueOnce(key, body string) answer {
	w.t.Helper()
	r := request(http.MethodPost, "/api/jobs", body)
	r.Header.Set("Idempotency-Key", key)
	return w.send(r)
}

func TestEnqueueUnderKey(t *testing.T) {
	w := newWorld(t)
	w.reply = wire.Reply{Status: wire.StatusOK, JID: "j1"}
	a := w.enqueueOnce("order-7", `{"class":"C","args":[1],"at":2000000000}`)
	require.Equal(t, http.StatusCreated, a.StatusCode, a.body)
	require.JSONEq(t, `{"jid":"j1"}`, a.body)
	require.Equal(t, "/api/jobs/j1", a.Header.Get("Location"))
	c := w.commands[0]
	require.Equal(t, []any{wire.CommandEnqueue, "order-7", `{"class":"C","args":[1],"at":2000000000}`, 2e9}, []any{c.Command, c.Key, string(c.Job), *c.At})
	require.Equal(t, "http", c.Actor)
	require.Empty(t, w.published, "the leader does it")

	a = w.do(http.MethodPost, "/api/jobs", `[{"class":"C","idempotency_key":"k"},{"class":"C","jid":"own"},{"class":"C","idempotency_key":7}]`)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Contains(t, a.body, `[{"jid":"j1"},{"jid":"own"},{"error":"bad_request"`)
	require.Equal(t, `{"class":"C"}`, string(w.commands[1].Job), "the key is not the job's")
	require.Len(t, w.published, 1)

	w.reply = wire.Reply{Status: wire.StatusConflict, Error: "conflict", Reason: "another job"}
	w.enqueueOnce("order-7", `{"class":"D"}`).problem(t, http.StatusConflict, "conflict")
	w.reply = wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: "none"}
	w.enqueueOnce("order-7", `{"class":"D"}`).problem(t, http.StatusServiceUnavailable, "no_leader")
}

func TestInvalidKeysAreRefused(t *testing.T) {
	w := newWorld(t)
	for key, body := range map[string]string{"é": `{"class":"C"}`, strings.Repeat("k", 256): `{"class":"C"}`, "k": `{"args":[]}`, "l": `[{"class":"C"}]`} {
		w.enqueueOnce(key, body).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.enqueueOnce("k", `{"class":"C","args":["`+strings.Repeat("x", 1<<20)+`"]}`).problem(t, http.StatusRequestEntityTooLarge, "payload_too_large")
	require.Empty(t, w.commands)
}

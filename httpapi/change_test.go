package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func TestChangeReturnsChangedEntry(t *testing.T) {
	w := newWorld(t)
	offset := w.add(wire.ScheduledJobs, scheduled("a", 1_800_000_000))
	w.reply = wire.Reply{Status: wire.StatusOK, Entry: &offset}
	a := w.do(http.MethodPatch, "/api/scheduled-jobs/a?offset=0", `{"at":1800000000,"queue":"other"}`)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.JSONEq(t, `{"offset":0,"first_offset":0,"at":1800000000,"queue":"default","class":"Mail","attempt":0}`, member(t, []byte(a.body), "millrace"))
	require.Len(t, w.commands, 1)
	require.Equal(t, []string{wire.CommandChange, `{"at":1800000000,"queue":"other"}`}, []string{w.commands[0].Command, string(w.commands[0].Changes)})

	a = w.do(http.MethodPost, "/api/scheduled-jobs/a/undo", `{"reason":"oops"}`)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Equal(t, []string{wire.CommandUndo, "oops"}, []string{w.commands[1].Command, w.commands[1].Reason})

	w.reply.Entry = nil // answered from the journal
	a = w.do(http.MethodPatch, "/api/retries/b", `{"args":[]}`)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Contains(t, a.body, `"omitted"`)
}

func TestInvalidChangesAreNotSent(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{"", "{}", `{"att":1}`, `{"priority":11}`, `{"queue":""}`, "[]", `{"at":"x"}`} {
		w.do(http.MethodPatch, "/api/retries/a", body).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.do(http.MethodPatch, "/api/dead-jobs/a", `{"at":1}`).problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodPost, "/api/retries/a/undo", `{"x":1}`).problem(t, http.StatusBadRequest, "bad_request")
	require.Empty(t, w.commands)
}

func member(t *testing.T, body []byte, name string) string {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &all))
	return string(all[name])
}

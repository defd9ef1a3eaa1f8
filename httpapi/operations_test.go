package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func TestOperations(t *testing.T) {
	w := newWorld(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.reply, w.onCommand = wire.Reply{Status: wire.StatusAccepted}, w.beginOperation
	a := w.do(http.MethodPost, "/api/operations",
		`{"action":"change","set":"retries","filter":{"queue":"q","error":"E"},"as_of":7,"expected_count":3,"at":1800000000,"rate":10,"reason":"later"}`)
	require.Equal(t, http.StatusAccepted, a.StatusCode)
	require.Len(t, w.commands, 1)
	cmd := w.commands[0]
	asOf, expected, at := int64(7), int64(3), 1.8e9
	require.Equal(t, &wire.Operation{Action: wire.CommandChange, Stream: wire.Retries, Filter: &wire.Filter{Queue: "q", Error: "E"}, AsOf: &asOf,
		Expected: &expected, At: &at, Rate: 10}, cmd.Bulk)
	require.Equal(t, "later", cmd.Reason)
	require.Equal(t, "/api/operations/"+cmd.ID, a.Header.Get("Location"))

	a = w.get("/api/operations/" + cmd.ID)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.JSONEq(t, `{"id":"`+cmd.ID+`","action":"change","set":"retries","filter":{"queue":"q","error":"E"},"as_of":7,"expected_count":3,"at":1800000000,
		"rate":10,"state":"running","started_at":5,"total":3,"done":0,"failed":0}`, a.body)
	require.Contains(t, w.get("/api/operations").body, cmd.ID)
	w.reply = wire.Reply{Status: wire.StatusDone}
	require.Equal(t, http.StatusNoContent, w.do(http.MethodDelete, "/api/operations/"+cmd.ID, "").StatusCode)
	require.Equal(t, cmd.ID, w.commands[1].Bulk.ID)
	w.get("/api/operations/other").problem(t, http.StatusNotFound, "not_found")
	w.reply = wire.Reply{Status: wire.StatusDrifted, Error: "precondition_failed", Reason: "r"}
	w.do(http.MethodPost, "/api/operations", `{"action":"delete","set":"retries","filter":{},"expected_count":1}`).
		problem(t, http.StatusPreconditionFailed, "precondition_failed")
	counted := w.get("/metrics").body
	require.Contains(t, counted, `millrace_operations_total{action="change",result="begun",user_tag="administrator",vhost="/"} 1`)
	require.Contains(t, counted, `millrace_operations_total{action="delete",result="precondition_failed",user_tag="administrator",vhost="/"} 1`)
}

// beginOperation journals what was requested.
func (w *world) beginOperation(cmd wire.Command) {
	if cmd.Command != wire.CommandOperate {
		return
	}
	op := *cmd.Bulk
	op.ID, op.State, op.StartedAt, op.Total = cmd.ID, wire.OperationRunning, 5, 3
	w.journal(wire.JournalRecord{Type: wire.TypeOperation, Operation: &op})
}

func TestUndoOfOperations(t *testing.T) {
	w := newWorld(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.reply, w.onCommand = wire.Reply{Status: wire.StatusAccepted}, w.beginOperation
	a := w.do(http.MethodPost, "/api/operations/op/undo", `{"reason":"oh no","rate":50}`)
	require.Equal(t, http.StatusAccepted, a.StatusCode)
	cmd := w.commands[0]
	require.Equal(t, []any{wire.CommandOperate, "oh no"}, []any{cmd.Command, cmd.Reason})
	require.Equal(t, &wire.Operation{Action: wire.CommandUndo, Undoes: "op", Rate: 50}, cmd.Bulk)
	require.JSONEq(t, `{"id":"`+cmd.ID+`","action":"undo","undoes":"op"}`, a.body)
	require.Equal(t, "/api/operations/"+cmd.ID, a.Header.Get("Location"))
	require.Equal(t, http.StatusAccepted, w.do(http.MethodPost, "/api/operations/op/undo", "").StatusCode)
	for _, body := range []string{`{"rate":0}`, `{"filter":{}}`} {
		w.do(http.MethodPost, "/api/operations/op/undo", body).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.do(http.MethodPost, "/api/operations", `{"action":"undo","set":"retries","filter":{}}`).problem(t, http.StatusBadRequest, "bad_request")
	require.Len(t, w.commands, 2)

	for _, op := range []wire.Operation{
		{ID: "op", Action: wire.CommandDelete, Stream: wire.Retries, Filter: &wire.Filter{}, State: wire.OperationRunning, StartedAt: 1},
		{ID: "op", State: wire.OperationDone, EndedAt: 2},
		{ID: "undo", Action: wire.CommandUndo, Stream: wire.Retries, Undoes: "op", From: 1, Through: 2, Total: 9, State: wire.OperationRunning, StartedAt: 3},
		{ID: "undo", State: wire.OperationDone, EndedAt: 4, Skips: []wire.Skip{{Reason: "it was undone already", Count: 9}}},
	} {
		w.journal(wire.JournalRecord{Type: wire.TypeOperation, Operation: &op})
	}
	require.Contains(t, w.get("/api/operations/op").body, `"undone_by":"undo"`)
	require.JSONEq(t, `{"id":"undo","action":"undo","set":"retries","undoes":"op","state":"done","started_at":3,"ended_at":4,"total":9,"done":0,"failed":0,"skipped":9,
		"skips":[{"reason":"it was undone already","count":9}]}`, w.get("/api/operations/undo").body)
}

func TestInvalidOperationsAreNotSent(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{
		``, `{}`, `{"action":"delete","set":"retries"}`, `{"action":"delete","set":"retry","filter":{}}`, `{"action":"trigger","set":"retries","filter":{}}`,
		`{"action":"delete","set":"retries","filter":{},"jids":["a"]}`, `{"action":"delete","set":"retries","jids":[""]}`,
		`{"action":"change","set":"retries","filter":{}}`, `{"action":"delete","set":"retries","filter":{},"at":1}`,
		`{"action":"delete","set":"retries","filter":{"quue":"q"}}`, `{"action":"delete","set":"retries","filter":{},"rate":0}`,
		`{"action":"delete","set":"retries","jids":["a"],"expected_count":1}`, `{"action":"explode","set":"retries","filter":{}}`,
		`{"action":"kill","set":"retries","filter":{"tag":null}}`, `{"action":"kill","set":"retries","filter":{"queue":""}}`,
		`{"action":"kill","set":"retries","filter":{},"as_of":null}`, `{"action":"kill","set":"retries","jids":["a"],"filter":null}`,
		`{"action":"kill","set":"retries","filter":{},"also":1}`,
		`{"action":"change","set":"retries","filter":{},"at":1e300}`, `{"action":"delete","set":"retries","filter":{},"as_of":-2}`,
	} {
		w.do(http.MethodPost, "/api/operations", body).problem(t, http.StatusBadRequest, "bad_request")
	}
	require.Empty(t, w.commands)
}

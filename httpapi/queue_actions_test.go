package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func TestMoveToAnotherType(t *testing.T) {
	w := newWorld(t)
	for _, bad := range []string{"", `{}`, `{"type":"stream"}`, `{"type":"quorum","x":1}`, `{"type":"quorum","id":"é"}`, `{"type":"quorum","timeout_s":19}`,
		`{"type":"quorum","id":""}`, `{"type":"quorum","dry_run":null}`} {
		w.do(http.MethodPost, "/api/job-queues/a/move-type", bad).problem(t, http.StatusBadRequest, "bad_request")
	}
	require.Empty(t, w.commands)
	w.reply = wire.Reply{Status: wire.StatusAccepted, Move: &wire.TypeMove{ID: "m", Queue: "a", From: "classic", To: "quorum", Ready: 7,
		Arguments: map[string]any{"x-queue-type": "quorum"}, State: wire.MoveRuns, Step: "waiting"}}
	r := w.do(http.MethodPost, "/api/job-queues/a/move-type", `{"type":"quorum","id":"m","timeout_s":90,"reason":"two nodes"}`)
	require.Equal(t, http.StatusAccepted, r.StatusCode)
	require.JSONEq(t, `{"id":"m","queue":"a","from":"classic","to":"quorum","ready":7,"unacked":0,"consumers":0,"arguments":{"x-queue-type":"quorum"},
		"dropped":null,"state":"running","step":"waiting","moved":0,"processes":[]}`, r.body)
	cmd := w.commands[0]
	require.Equal(t, wire.Command{ID: "m", Command: wire.CommandMoveType, Queue: "a", Type: "quorum", Within: 90, Reason: "two nodes", Actor: cmd.Actor}, cmd)

	w.do(http.MethodPost, "/api/job-queues/a/move-type", `{"type":"classic","dry_run":true}`)
	require.True(t, w.commands[1].DryRun)
	require.NotEmpty(t, w.commands[1].ID, "a new move has an id")
	w.reply = wire.Reply{Status: wire.StatusConflict, Error: "conflict", Reason: "jobs are unacknowledged"}
	w.do(http.MethodPost, "/api/job-queues/a/move-type", `{"type":"quorum"}`).problem(t, http.StatusConflict, "conflict")
	w.reply = wire.Reply{Status: wire.StatusDone}
	w.do(http.MethodPost, "/api/job-queues/a/move-type", `{"type":"quorum"}`).problem(t, http.StatusServiceUnavailable, "service_unavailable")
}

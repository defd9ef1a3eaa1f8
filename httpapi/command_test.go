package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

func TestCommandHasActorAndReason(t *testing.T) {
	w := newWorld(t)
	r := request(http.MethodPost, "/api/retries/a/kill?offset=7", "")
	r.Header.Set("X-Reason", "wörks as designed")
	a := w.send(r)
	require.Equal(t, http.StatusNoContent, a.StatusCode)
	require.Empty(t, a.body)
	require.Equal(t, http.StatusNoContent, w.do(http.MethodDelete, "/api/retries/a", `{"reason":"from the body"}`).StatusCode)
	require.Len(t, w.commands, 2)

	seven := int64(7)
	first, second := w.commands[0], w.commands[1]
	require.NotEmpty(t, first.ID)
	require.NotEqual(t, first.ID, second.ID)
	first.ID = ""
	require.Equal(t, wire.Command{Command: wire.CommandKill, Stream: wire.Retries, JID: "a", Offset: &seven, Reason: "wörks as designed", Actor: "http"}, first)
	require.Equal(t, "from the body", second.Reason)
	require.Nil(t, second.Offset)
	for _, c := range w.commands {
		body, err := json.Marshal(c)
		require.NoError(t, err)
		_, err = wire.ParseCommand(body)
		require.NoError(t, err, "the leader must understand it")
	}
	require.Contains(t, w.log.String(), `"command":"kill"`)
}

func TestReplyStatusMapsToHTTPStatus(t *testing.T) {
	w := newWorld(t)
	happened := &wire.Happened{What: "fired", At: 1_700_000_000, Offset: 3}
	for _, c := range []struct {
		reply  wire.Reply
		status int
		code   string
	}{
		{wire.Reply{Status: 400, Error: "bad_request", Reason: "r"}, 400, "bad_request"},
		{wire.Reply{Status: 404, Error: "not_found", Reason: "r", Happened: happened}, 404, "not_found"},
		{wire.Reply{Status: 409, Error: "conflict", Reason: "r", Offsets: []int64{1, 2}}, 409, "conflict"},
		{wire.Reply{Status: 503, Error: "no_leader", Reason: "r"}, 503, "no_leader"},
		{wire.Reply{Status: 503, Reason: "r"}, 503, "service_unavailable"},
		{wire.Reply{Status: 504, Error: "outcome_unknown", Reason: "r"}, 504, "outcome_unknown"},
		{wire.Reply{Status: 504}, 504, "outcome_unknown"},
		{wire.Reply{}, 504, "outcome_unknown"},
		{wire.Reply{Status: 299, Reason: "r"}, 204, ""},
		{wire.Reply{Status: 999, Error: "x", Reason: "r"}, 504, "outcome_unknown"},
	} {
		w.reply = c.reply
		a := w.do(http.MethodPost, "/api/dead-jobs/a/retry", "")
		if c.status == 204 {
			require.Equal(t, 204, a.StatusCode)
			continue
		}
		p := a.problem(t, c.status, c.code)
		require.Equal(t, c.reply.Happened, p.Happened)
		require.Equal(t, c.reply.Offsets, p.Offsets)
		require.Equal(t, c.status == 503, a.Header.Get("Retry-After") != "")
	}
}

func TestInvalidCommandsAreNotSent(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{`{"reasn":"x"}`, `[]`, `{`, `{} {}`, `{}x`, `"x"`, `{"reason":1}`, `null`, ` `, "\r", `1`, `{"reason":"` + strings.Repeat("x", 4097) + `"}`} {
		w.do(http.MethodDelete, "/api/retries/a", body).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.do(http.MethodDelete, "/api/retries/a?jid=b", "").problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodDelete, "/api/retries/a?offset=", "").problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodPost, "/api/release?discard=true", "").problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodPost, "/api/release", `{"discrad":true}`).problem(t, http.StatusBadRequest, "bad_request")
	require.Empty(t, w.commands)
}

func TestReasonHeaderMayBeLatin1(t *testing.T) {
	w := newWorld(t)
	r := request(http.MethodDelete, "/api/retries/a", "")
	r.Header.Set("X-Reason", "f\xfcr Ann")
	require.Equal(t, http.StatusNoContent, w.send(r).StatusCode)
	require.Equal(t, "für Ann", w.commands[0].Reason)
}

func TestReleaseAndDiscard(t *testing.T) {
	w := newWorld(t)
	for body, want := range map[string]string{
		"": wire.CommandRelease, `{}`: wire.CommandRelease, `{"discard":false,"reason":"r"}`: wire.CommandRelease, `{"discard":true}`: wire.CommandDiscard,
	} {
		w.commands = nil
		require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, "/api/release", body).StatusCode)
		require.Len(t, w.commands, 1)
		require.Equal(t, want, w.commands[0].Command)
	}
}

func TestCommandHasDeadline(t *testing.T) {
	var bounded bool
	w := newWorld(t, func(c *httpapi.Config) {
		c.Ask = func(ctx context.Context, _ wire.Command) wire.Reply {
			_, bounded = ctx.Deadline()
			return wire.Reply{Status: 204}
		}
	})
	w.do(http.MethodDelete, "/api/retries/a", "")
	require.True(t, bounded)
}

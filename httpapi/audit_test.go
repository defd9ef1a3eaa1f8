package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// pastPage is a page of the audit log, as a client reads it.
type pastPage struct {
	Items    []map[string]any
	Searched int
	Next     *string
	Older    bool `json:"older_than_kept"`
}

func (w *world) past(target string) (p pastPage) {
	w.t.Helper()
	a := w.get(target)
	require.Equal(w.t, http.StatusOK, a.StatusCode, a.body)
	require.NoError(w.t, json.Unmarshal([]byte(a.body), &p))
	return p
}

func TestJournal(t *testing.T) {
	w := newWorld(t)
	require.JSONEq(t, `{"items":[],"searched":0,"next":null,"older_than_kept":false}`, w.get("/api/journal").body)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, At: 5, Stream: wire.Retries, Offset: 3, JID: "a/b", Actor: "ann", Reason: "old"})
	w.journal(wire.JournalRecord{Type: wire.TypeDismissed, At: 6, Stream: wire.Heartbeats, Offset: 0, Actor: "bob"})
	paused := map[string]wire.Pause{"low": {At: 7}}
	w.journal(wire.JournalRecord{Type: wire.TypeState, At: 7, Queue: "low", Paused: &paused, Actor: "bob"})
	w.journal(wire.JournalRecord{Type: wire.TypeOperation, At: 8, Operation: &wire.Operation{ID: "op", Action: wire.CommandKill, Stream: wire.Retries,
		Filter: &wire.Filter{}, State: wire.OperationRunning, Actor: "ann"}})
	w.journal(wire.JournalRecord{Type: wire.TypeNoted, At: 9, Noted: &wire.Noted{Op: wire.NotedMoved, Queue: "a", To: "b", Count: 2}, Actor: "cyn", Reason: "slow"})
	w.journal(wire.JournalRecord{Type: wire.TypeNoted, At: 9, Noted: &wire.Noted{Op: wire.NotedStopped, Identity: "*"}, Actor: "cyn"})
	require.JSONEq(t, `{"items":[
		{"record":6,"at":9,"op":"stopped","identity":"*","actor":"cyn"},
		{"record":5,"at":9,"op":"moved","queue":"a","to":"b","count":2,"actor":"cyn","reason":"slow"},
		{"record":4,"at":8,"op":"operation","set":"retries","actor":"ann","operation":"op","action":"kill","state":"running"},
		{"record":3,"at":7,"op":"paused","queue":"low","actor":"bob"},
		{"record":2,"at":6,"op":"dismissed","stream":"heartbeats","offset":0,"actor":"bob"},
		{"record":1,"at":5,"op":"deleted","set":"retries","offset":3,"jid":"a/b","actor":"ann","reason":"old"}],
		"searched":6,"next":null,"older_than_kept":false}`, w.get("/api/journal").body)
	for query, want := range map[string]string{
		"actor=ann": "[4 1]", "jid=a%2Fb": "[1]", "op=paused": "[3]", "from=6&to=8": "[3 2]", "from=1970-01-01T00:00:08Z&to=9": "[4]", "op=moved": "[5]", "limit=2": "[6 5]", "next=3": "[2 1]",
	} {
		var records []any
		p := w.past("/api/journal?" + query)
		for _, i := range p.Items {
			records = append(records, i["record"])
		}
		require.Equal(t, want, fmt.Sprint(records), query)
		require.Equal(t, query == "limit=2", p.Next != nil)
	}
	for _, query := range []string{"limit=0", "limit=501", "next=0", "next=x", "from=x", "to=x", "page=1", "actor="} {
		w.get("/api/journal?"+query).problem(t, http.StatusBadRequest, "bad_request")
	}
}

package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestJournalIsPrinted(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"items":[{"record":7,"at":1,"op":"deleted","set":"retries","offset":3,"jid":"j1","actor":"ann","reason":"old"},
		{"record":6,"at":1,"op":"operation","operation":"op1","action":"retry","state":"done"},{"record":5,"at":1,"op":"paused","queue":"low","actor":"bob"},
		{"record":4,"at":1,"op":"moved","queue":"mail","to":"bulk","count":12,"actor":"bob"},{"record":3,"at":1,"op":"stopped","identity":"host:1:w","actor":"bob"}],
		"searched":3,"next":"5","older_than_kept":false}`)
	r := millrace(t, append(strings.Fields("journal --actor ann --jid j1 --op deleted --from 1000000000 --next 9 --limit 3"), "--http-addr", a.Addr())...)
	require.Equal(t, "GET /api/journal?actor=ann&from=2001-09-09T01%3A46%3A40Z&jid=j1&limit=3&next=9&op=deleted", a.Asked()[0])
	for _, want := range []string{"ann", "deleted", "j1", "old", "(millrace)", "operation done: retry", "op1", "low", "mail to bulk (12 jobs)", "stopped", "host:1:w", "5 shown; more with --next 5"} {
		require.Contains(t, r.out, want)
	}
	require.Contains(t, millrace(t, "journal", "-o", "json", "--http-addr", a.Addr()).out, `"record": 7`)
	for answer, end := range map[string]string{
		`{"items":[],"next":null,"older_than_kept":false}`:                "none\n",
		`{"items":[],"next":null,"older_than_kept":true}`:                 "none; older records are not kept\n",
		`{"items":[{"op":"paused"}],"next":null,"older_than_kept":false}`: "1 in all\n",
	} {
		require.Contains(t, millrace(t, "journal", "--http-addr", clitest.NewAPI(t, http.StatusOK, answer).Addr()).out, end)
	}
	require.Contains(t, millrace(t, "journal", "--from", "soon", "--http-addr", a.Addr()).err, "--from")
	require.Contains(t, millrace(t, "journal", "--http-addr", clitest.NewAPI(t, http.StatusOK, "x").Addr()).err, "cannot be read")
}

package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestRecentRunsArePrinted(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"items":[{"at":1,"jid":"j1","class":"Mail","queue":"q","status":"failed","duration_ms":1500,"wait_ms":null,"attempt":2,"worker":"w:1:x","error_class":"Timeout"},
		{"at":1,"jid":"j2","class":"Mail","queue":"q","status":"expired","duration_ms":null,"attempt":0}],"searched":2,"next":null,"older_than_kept":true}`)
	r := millrace(t, append(strings.Fields("jobs --failed --queue q --class Mail --jid j1 --error Timeout --to 1000000000 --next 9,0 --limit 3"), "--http-addr", a.Addr())...)
	require.Equal(t, "GET /api/jobs?class=Mail&error=Timeout&failed=true&jid=j1&limit=3&next=9%2C0&queue=q&to=2001-09-09T01%3A46%3A40Z", a.Asked()[0])
	for _, want := range []string{"j1", "Mail", "1.5s", "Timeout", "w:1:x", "2 shown; older records are not kept"} {
		require.Contains(t, r.out, want)
	}
	require.Contains(t, millrace(t, "jobs", "-o", "json", "--http-addr", a.Addr()).out, `"status": "failed"`)
	require.Contains(t, millrace(t, "jobs", "--error", "fp-0f2b7a5c9d8e1a34", "--http-addr", a.Addr()).err, "invalid --error: a fingerprint")
	require.Contains(t, millrace(t, "jobs", "--from", "soon", "--http-addr", a.Addr()).err, "--from")
}

package cli

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

const oneLimit = `{"name":"each","state":"active","definition":{"concurrency":3,"per":["key"]},"layers":{},"used":4,"waiting":9,"full":1,
	"parts":[{"key":"customer-42","concurrency":3,"used":3,"waiting":9},{"key":"customer-7","concurrency":3,"used":1,"waiting":0}]}`

func TestLimitsAreShown(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, "["+oneLimit+"]")
	r := millrace(t, "limits", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"NAME", "each", "active", "9"} {
		require.Contains(t, r.out, want)
	}
	a = clitest.NewAPI(t, http.StatusOK, oneLimit)
	r = millrace(t, "limits", "parts", "each", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"customer-42", "3 of 3", "1 of 3"} {
		require.Contains(t, r.out, want)
	}
	a = clitest.NewAPI(t, http.StatusOK, `[{"slot":"g.1.2.3.j","jid":"j","at":1795831200,"queue":"imports","class":"Import","key":"k"}]`)
	r = millrace(t, "limits", "slots", "--limit", "each", "--key", "k", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "g.1.2.3.j")
	require.Equal(t, []string{"GET /api/slots?key=k&limit=each"}, a.Asked())
}

func TestLimitsAreControlled(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusNoContent, "")
	for _, args := range [][]string{{"pause", "each", "--reason", "r"}, {"resume", "each"}, {"delete", "each", "--yes", "--layer", "operator"}, {"free", "g.1.2.3.j", "--yes", "--reason", "r"}} {
		r := millrace(t, append(append([]string{"limits"}, args...), "--http-addr", a.Addr())...)
		require.Zero(t, r.code, r.err)
	}
	require.Equal(t, []string{`PUT /api/limits/each/pause application/json {"reason":"r"}`, "PUT /api/limits/each/resume", "DELETE /api/limits/each?layer=operator",
		`POST /api/slots/free application/json {"reason":"r","slot":"g.1.2.3.j"}`}, a.Asked())
}

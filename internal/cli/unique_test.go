package cli

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestUniqueKeysAreShownAndFreed(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `[{"hash":"0123456789abcdef0123456789abcdef","key":"k","jid":"j","state":"period","since":1795831200,"until":1795834800}]`)
	r := millrace(t, "unique", "--key", "k", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"KEY", "k", "j", "period", "0123456789abcdef0123456789abcdef"} {
		require.Contains(t, r.out, want)
	}
	require.Equal(t, []string{"GET /api/unique-keys?key=k"}, a.Asked())
	a = clitest.NewAPI(t, http.StatusNoContent, "")
	r = millrace(t, "unique", "free", "0123456789abcdef0123456789abcdef", "--yes", "--reason", "r", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, []string{`DELETE /api/unique-keys/0123456789abcdef0123456789abcdef application/json {"reason":"r"}`}, a.Asked())
}

func TestUniqueFlags(t *testing.T) {
	for _, c := range []struct {
		flags jobFlags
		want  string
	}{
		{jobFlags{}, ""},
		{jobFlags{uniqueFlags: uniqueFlags{Unique: true}}, `{"unique":{}}`},
		{jobFlags{LimitKey: "c", uniqueFlags: uniqueFlags{UniqueKey: "k", UniqueFor: "1h", UniqueReplace: true}}, `{"key":"c","unique":{"key":"k","for":3600,"on":"replace"}}`},
		{jobFlags{uniqueFlags: uniqueFlags{UniqueBy: []string{"args.0"}, UniqueWaiting: true, UniqueWait: "30s", UniqueMax: "5m"}},
			`{"unique":{"by":["args.0"],"while":"waiting","wait":30,"max":300}}`},
	} {
		c.flags.Class, c.flags.Args, c.flags.Queue = "C", "[]", "q"
		j, err := c.flags.job(time.Now())
		require.NoError(t, err)
		if c.want == "" {
			require.Nil(t, j.Gate)
			continue
		}
		body, err := encode(j.Gate)
		require.NoError(t, err)
		require.Equal(t, c.want, string(body))
	}
	for _, wrong := range []uniqueFlags{{UniqueFor: "soon"}, {UniqueMax: "1h"}, {UniqueKey: "k", UniqueBy: []string{"args"}}, {UniqueBy: []string{"colour"}}} {
		f := jobFlags{Class: "C", Args: "[]", Queue: "q", uniqueFlags: wrong}
		_, err := f.job(time.Now())
		require.Error(t, err, "%+v", wrong)
	}
}

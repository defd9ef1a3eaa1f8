package cli

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestSignInOptionsOfCommands(t *testing.T) {
	var got []string
	a := clitest.NewAPI(t, http.StatusOK, `{"total_count":0,"items":[]}`)
	a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		got = append(got, r.URL.Path+" "+name+":"+password+r.Header.Get("X"))
		_, _ = w.Write([]byte(`{"total_count":0,"items":[]}`))
	})
	for _, args := range [][]string{
		{"--http-addr", a.Addr()},
		{"--http-addr", a.Addr(), "--amqp-url", "amqp://bob:b@x/"},
		{"--http-addr", a.Addr(), "--amqp-url", "amqp://bob@x/", "--amqp-password-file", clitest.File(t, "c\n")},
		{"--api-url", "http://ann:d@" + a.Addr() + "/pre/"},
		{"--api-url", "http://ann@" + a.Addr(), "--api-password-file", clitest.File(t, "e\n")},
	} {
		r := millrace(t, append([]string{"dead"}, args...)...)
		require.Zero(t, r.code, r.err)
	}
	require.Equal(t, []string{"/api/dead-jobs guest:guest", "/api/dead-jobs bob:b", "/api/dead-jobs bob:c", "/pre/api/dead-jobs ann:d", "/api/dead-jobs ann:e"}, got)
}

package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

// eventServer answers each connection with the next of its texts and keeps the last one open. It
// refuses the connection if the text begins with a number.
func eventServer(t *testing.T, texts ...string) (addr string, lastIDs *[]string) {
	t.Helper()
	lastIDs = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := len(*lastIDs)
		*lastIDs = append(*lastIDs, r.Header.Get("Last-Event-ID"))
		switch {
		case strings.HasPrefix(texts[n], "503"):
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasPrefix(texts[n], "401"):
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(texts[n]))
		if n == len(texts)-1 && !strings.HasPrefix(texts[n], "401") {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), lastIDs
}

const firstEvents = "retry: 2000\n\n:\n\nid: a.1\nevent: update\ndata: {\"now\":1}\n\n"

func TestEventsResumeAfterReconnect(t *testing.T) {
	addr, lastIDs := eventServer(t, firstEvents+"event: end\ndata: {\"reason\":\"this sidecar stops\"}\n\n", "503", firstEvents,
		"event: dropped\ndata: {\"reason\":\"you took nothing\"}\n\nid: a.2\nevent: update\ndata: {\"now\":2}\n\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, said clitest.Buffer
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, []string{"events", "--http-addr", addr}, &out, &said) }()
	brokertest.Eventually(t, func() bool { return strings.HasSuffix(out.String(), "{\"now\":2}\n") }, "what follows comes")
	cancel()
	select {
	case code := <-ended:
		require.Zero(t, code, said.String())
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	require.Equal(t, "{\"now\":1}\n{\"now\":1}\n{\"now\":2}\n", out.String())
	require.Equal(t, []string{"", "a.1", "a.1", "a.1"}, *lastIDs)
	require.Equal(t, "millrace: the sidecar ended this: this sidecar stops; connecting again\n"+
		"millrace: the sidecar answered 503 Service Unavailable; connecting again\n"+
		"millrace: the sidecar's answer broke off: EOF; connecting again\nmillrace: you took nothing\n", said.String())
}

func TestEventsEndOnPermanentErrors(t *testing.T) {
	addr, _ := eventServer(t, firstEvents, "401")
	r := millrace(t, "events", "--http-addr", addr)
	require.Equal(t, ExitFailed, r.code)
	require.Equal(t, "{\"now\":1}\n", r.out)
	require.Contains(t, r.err, "as user \"guest\" of --amqp-url: the sidecar answered 401 Unauthorized\n")

	require.Contains(t, millrace(t, "events", "--http-addr", "127.0.0.1:1").err, "no sidecar answers")

	addr, _ = eventServer(t, firstEvents)
	require.Zero(t, millrace(t, "events", "--for", "1s", "--http-addr", addr).code)
}

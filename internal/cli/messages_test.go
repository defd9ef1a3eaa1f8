package cli

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

// Lists show where a message goes in place of its class.
func TestListsShowWhereMessagesGo(t *testing.T) {
	for args, want := range map[string]string{
		`[{"exchange":"orders","routing_key":"order.unpaid"}]`: "orders → order.unpaid", `[{"exchange":"orders"}]`: "orders", `[{"exchange":"","routing_key":"mails"}]`: "mails",
		`[{"routing_key":"k"}]`: "millrace.Message", `[5]`: "millrace.Message", `[]`: "millrace.Message",
	} {
		a := clitest.NewAPI(t, http.StatusOK, `{"total_count":1,"items":[{"jid":"m1","error_class":"E","job":{"args":`+args+`},"millrace":{"at":1,"queue":"q","class":"millrace.Message"}}]}`)
		for _, list := range []string{"scheduled", "dead"} {
			require.Regexp(t, `m1 +`+want+` +q`, millrace(t, list, "--http-addr", a.Addr()).out)
		}
	}
}

func TestMessagesAreShownByExchange(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"items":[{"exchange":"orders","scheduled":1200,"retrying":1,"dead":0,"next_at":1795158930.5},
		{"exchange":"","scheduled":0,"retrying":0,"dead":3,"next_at":null}],"unsearched":2,"complete":false}`)
	r := millrace(t, "messages", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, []string{"GET /api/messages/exchanges"}, a.Asked())
	require.Regexp(t, `EXCHANGE +SCHEDULED +RETRYING +DEAD +NEXT DUE \(UTC\)\norders +1200 +1 +0 +\S.*\n\(default\) +0 +0 +3`, r.out)
	require.Contains(t, r.out, "1204 messages for 2 exchanges; 2 messages not counted: the records are large, or name no exchange; there are more exchanges")

	none := clitest.NewAPI(t, http.StatusOK, `{"items":[],"unsearched":0,"complete":true}`)
	require.Equal(t, "none\n", millrace(t, "messages", "--http-addr", none.Addr()).out)
}

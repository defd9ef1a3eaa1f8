package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

const envelope = `{"total_count":3,"filtered_count":2,"item_count":2,"page":1,"page_size":2,"page_count":1,"next":"5,7","items":[
  {"type":"retry","jid":"a","error_class":"Timeout","error_message":"no\u001b[2J answer","job":{"class":"Mail","args":[1, 2]},
   "millrace":{"offset":5,"first_offset":5,"at":1798135200.5,"queue":"low","class":"Mail","attempt":3}},
  {"job":{"jid":"b\tc","args":"x"},"error_message":7,"millrace":{"offset":7,"at":1798135200,"queue":"default","class":"Call","attempt":1}}]}`

// tables is a printer of tables, at a time in UTC.
func tables(out *bytes.Buffer) *output.Printer {
	return output.NewPrinter(out, output.Streams{}, time.Unix(1798135140, 0).UTC())
}

func printList(p *output.Printer, command string, found *answer.Page[answer.Entry]) error {
	l := lists[command]
	return p.List(l.table(found.Items), endOf(found))
}

func TestPageOfList(t *testing.T) {
	p, err := apiclient.Decode[answer.Page[answer.Entry]]([]byte(envelope))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printList(tables(&out), "retries", p))
	require.Equal(t, `DUE (UTC)                      JID  CLASS  QUEUE    RETRY  ERROR
2026-12-24 18:00:00  in 1m00s  a    Mail   low      3      Timeout: no·[2J answer
2026-12-24 18:00:00  in 1m00s  b·c  Call   default  1
2 of 2 that match, 3 in all; more with --page 2
`, out.String())
}

func TestSearchContinues(t *testing.T) {
	p, err := apiclient.Decode[answer.Page[answer.Entry]]([]byte(`{"total_count":300000,"page":1,"next":"5,7","items":[]}`))
	require.NoError(t, err)
	require.Equal(t, "none that match, 300000 in all; more with --next 5,7", endOf(p))
}

func TestEmptyTable(t *testing.T) {
	p, err := apiclient.Decode[answer.Page[answer.Entry]]([]byte(`{"total_count":0,"items":[]}`))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, printList(tables(&out), "dead", p))
	require.Equal(t, "none\n", out.String())
}

func TestAnswerIsNotAList(t *testing.T) {
	_, err := apiclient.Decode[answer.Page[answer.Entry]]([]byte("<html>"))
	require.ErrorContains(t, err, "cannot be read")
}

func TestSummary(t *testing.T) {
	two, three := int64(2), int64(3)
	for _, test := range []struct {
		shown, total int64
		match        *int64
		next         int64
		want         string
	}{
		{0, 0, nil, 0, "none"},
		{0, 3, new(int64), 0, "none that match, 3 in all"},
		{3, 3, &three, 0, "3 in all"},
		{2, 3, &three, 2, "2 of 3; more with --page 2"},
		{1, 3, &two, 0, "1 of 2 that match, 3 in all"},
		{1, 3, nil, 4, "1 that match, 3 in all; more with --page 4"},
	} {
		require.Equal(t, test.want, summary(test.shown, test.total, test.match, test.next))
	}
}

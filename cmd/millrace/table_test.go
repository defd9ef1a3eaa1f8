package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const envelope = `{"total_count":3,"filtered_count":2,"item_count":2,"page":1,"page_size":2,"page_count":1,"next":"5,7","items":[
  {"type":"retry","jid":"a","error_class":"Timeout","error_message":"no\u001b[2J answer","job":{"class":"Mail","args":[1, 2]},
   "millrace":{"offset":5,"first_offset":5,"at":1798135200.5,"queue":"low","class":"Mail","attempt":3}},
  {"job":{"jid":"b\tc","args":"x"},"error_message":7,"millrace":{"offset":7,"at":1798135200,"queue":"default","class":"Call","attempt":1}}]}`

// printerFor is a printer of a form, at a time in UTC.
func printerFor(out *bytes.Buffer, form string) *printer {
	return &printer{w: out, form: form, now: time.Unix(1798135140, 0).UTC()}
}

func TestTable(t *testing.T) {
	p, err := readAnswer[page]([]byte(envelope))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, p.print(printerFor(&out, ""), retriesSet))
	require.Equal(t, `DUE (UTC)                      JID  CLASS  QUEUE    RETRY  ERROR
2026-12-24 18:00:00  in 1m00s  a    Mail   low      3      Timeout: no·[2J answer
2026-12-24 18:00:00  in 1m00s  b·c  Call   default  1
2 of 2 that match, 3 in all; more with --page 2
`, out.String())

	out.Reset()
	narrow := printerFor(&out, "")
	narrow.width = 40
	require.NoError(t, p.print(narrow, retriesSet))
	require.Equal(t, `DUE       JID  CLASS  QUEUE    RETRY  E…
in 1m00s  a    Mail   low      3      T…
in 1m00s  b·c  Call   default  1
2 of 2 that match, 3 in all; more with --page 2
`, out.String(), "times are relative on a narrow terminal")
}

func TestCSV(t *testing.T) {
	var out bytes.Buffer
	p := printerFor(&out, formCSV)
	columns := []column{{"AT", atKind}, {"RUN TIME", plainKind}, {"TEXT", textKind}, {"MORE", plainKind | wideOnly}}
	long := strings.Repeat("x", 700)
	require.NoError(t, p.table(&table{columns: columns, rows: [][]any{{time.Unix(1798135140, 0).UTC(), 7, "a,\"b\"\n" + long, nil}}}))
	require.NoError(t, p.say("3 in all"))
	require.Equal(t, "at,run_time,text,more\n2026-12-24T17:59:00Z,7,\"a,\"\"b\"\"\n"+long+"\",\n", out.String())

	out.Reset()
	require.NoError(t, p.table(&table{columns: columns}))
	require.Equal(t, "at,run_time,text,more\n", out.String(), "the titles also of an empty list")

	out.Reset()
	require.NoError(t, p.did(fields{"queue": "mails", "jobs": 3, "reason": ""}, "done"))
	require.Equal(t, "jobs,queue\n3,mails\n", out.String())
}

func TestWideTables(t *testing.T) {
	tab := &table{columns: []column{{"A", textKind}, {"B", plainKind | wideOnly}}, rows: [][]any{{strings.Repeat("x", 100), "b"}}}
	var out bytes.Buffer
	require.NoError(t, printerFor(&out, "table").table(tab))
	require.Equal(t, "A\n"+strings.Repeat("x", longestCell-1)+"…\n", out.String())
	out.Reset()
	require.NoError(t, printerFor(&out, formWide).table(tab))
	require.Equal(t, strings.Repeat("x", 100)+"  b\n", strings.SplitAfter(out.String(), "\n")[1])
}

func TestYAMLKeepsWhatJSONSays(t *testing.T) {
	const body = `{"z":1e400,"a":[9007199254740993,true,null,{}],"text":"yes","number":"12","lines":"a\nb","smile":"\ud83d\ude00","empty":"","nested":{"b":1,"a":[]},"colon":"a: b","dash":"- x","time":"2026-12-24"}`
	var out bytes.Buffer
	require.NoError(t, printYAML(&out, []byte(body)))
	require.True(t, strings.HasPrefix(out.String(), "z: 1e400\na:\n  - 9007199254740993\n  - true\n  - null\n  - {}\n"), out.String())
	var back map[string]any
	require.NoError(t, yaml.Unmarshal(out.Bytes(), &back))
	for member, want := range map[string]any{"text": "yes", "number": "12", "lines": "a\nb", "smile": "😀", "empty": "", "colon": "a: b", "dash": "- x", "time": "2026-12-24"} {
		require.Equal(t, want, back[member], member)
	}
	require.Error(t, printYAML(&out, []byte(`{"a":`)))
}

func TestLinesOfAList(t *testing.T) {
	for body, want := range map[string]string{
		`{"total_count":2,"items":[{"a": 1},{"b": [1, 2]}]}`: "{\"a\":1}\n{\"b\":[1,2]}\n",
		`[1, "x"]`:       "1\n\"x\"\n",
		`{"a": 1}`:       "{\"a\":1}\n",
		`{"items": []}`:  "",
		`{"items": "x"}`: "{\"items\":\"x\"}\n",
	} {
		var out bytes.Buffer
		require.NoError(t, printLines(&out, []byte(body)))
		require.Equal(t, want, out.String(), body)
	}
}

func TestFactsOfOneThing(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printerFor(&out, "").facts([]byte(`{"name":"mails","ready":12,"oldest":{"seconds":3.5},"queues":["a","b"],"none":null,
		"job":{"args":[1, {"x":2}]},"jobs":[{"jid":"j1"},{"jid":"j2"}],"retry_at":1798135200,"text":"a\u001b[2J"}`)))
	require.Equal(t, `name            mails
ready           12
oldest.seconds  3.5
queues          ["a","b"]
job.args        [1,{"x":2}]
jobs.0.jid      j1
jobs.1.jid      j2
retry_at        2026-12-24 18:00:00 UTC  in 1m00s
text            a·[2J
`, out.String())
	require.ErrorContains(t, printerFor(&out, "").facts([]byte("<html>")), "the sidecar's answer")
}

func TestSearchThatGoesOn(t *testing.T) {
	p, err := readAnswer[page]([]byte(`{"total_count":300000,"page":1,"next":"5,7","items":[]}`))
	require.NoError(t, err)
	require.Equal(t, "none that match, 300000 in all; more with --next 5,7", p.end())
}

func TestTableOfNothing(t *testing.T) {
	p, err := readAnswer[page]([]byte(`{"total_count":0,"items":[]}`))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, p.print(printerFor(&out, ""), deadSet))
	require.Equal(t, "none\n", out.String())
}

func TestAnswerThatIsNoList(t *testing.T) {
	_, err := readAnswer[page]([]byte("<html>"))
	require.ErrorContains(t, err, "cannot be read")
	require.ErrorContains(t, printerFor(&bytes.Buffer{}, formJSON).answer([]byte("<html>")), "no JSON")
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

func TestTextsAreCutByTheCellsOfATerminal(t *testing.T) {
	require.Equal(t, "short", cut("short", 5))
	require.Equal(t, "sho…", cut("short", 4))
	require.Equal(t, "é…", cut("éééé", 2))
	require.Equal(t, "日本…", cut("日本語です", 6), "wide characters take two cells")
	require.Equal(t, 10, cells("日本語です"))
	require.Equal(t, 1, cells("e\u0301"), "an accent takes none")
}

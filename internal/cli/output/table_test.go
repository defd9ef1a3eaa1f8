package output

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// printerFor is a printer of a form, at a time in UTC.
func printerFor(out *bytes.Buffer, form string) *Printer {
	return &Printer{w: out, form: form, now: time.Unix(1798135140, 0).UTC()}
}

func TestTable(t *testing.T) {
	due := time.Unix(1798135200, 0).UTC()
	columns := []Column{Due("DUE"), ID("JID"), Name("CLASS"), Name("QUEUE"), Plain("RETRY"), Text("ERROR")}
	tab := &Table{Columns: columns, Rows: [][]any{
		{due, "a", "Mail", "low", 3, "Timeout: no\u001b[2J answer"}, {due, "b\tc", "Call", "default", 1, nil},
	}}
	var out bytes.Buffer
	require.NoError(t, printerFor(&out, "").List(tab, "2 in all"))
	require.Equal(t, `DUE (UTC)                      JID  CLASS  QUEUE    RETRY  ERROR
2026-12-24 18:00:00  in 1m00s  a    Mail   low      3      Timeout: no·[2J answer
2026-12-24 18:00:00  in 1m00s  b·c  Call   default  1
2 in all
`, out.String())

	out.Reset()
	narrow := printerFor(&out, "")
	narrow.width = 40
	require.NoError(t, narrow.List(tab, "2 in all"))
	require.Equal(t, `DUE       JID  CLASS  QUEUE    RETRY  E…
in 1m00s  a    Mail   low      3      T…
in 1m00s  b·c  Call   default  1
2 in all
`, out.String(), "times are relative on a narrow terminal")
}

func TestCSV(t *testing.T) {
	var out bytes.Buffer
	p := printerFor(&out, FormCSV)
	columns := []Column{Time("AT"), Plain("RUN TIME"), Text("TEXT"), Plain("MORE")}
	long := strings.Repeat("x", 700)
	require.NoError(t, p.Table(&Table{Columns: columns, Rows: [][]any{{time.Unix(1798135140, 0).UTC(), 7, "a,\"b\"\n" + long, nil}}}))
	require.NoError(t, p.Note("3 in all"))
	require.Equal(t, "at,run_time,text,more\n2026-12-24T17:59:00Z,7,\"a,\"\"b\"\"\n"+long+"\",\n", out.String())

	out.Reset()
	require.NoError(t, p.Table(&Table{Columns: columns}))
	require.Equal(t, "at,run_time,text,more\n", out.String(), "the titles also of an empty list")

	out.Reset()
	require.NoError(t, p.Done(Fields{"queue": "mails", "jobs": 3, "reason": ""}, "done"))
	require.Equal(t, "jobs,queue\n3,mails\n", out.String())
}

func TestWideTables(t *testing.T) {
	tab := &Table{Columns: []Column{Text("A"), Plain("B")}, Rows: [][]any{{strings.Repeat("x", 100), "b"}}}
	var out bytes.Buffer
	require.NoError(t, printerFor(&out, "table").Table(tab))
	require.Equal(t, strings.Repeat("x", longestCell-1)+"…  b\n", strings.SplitAfter(out.String(), "\n")[1])
	out.Reset()
	require.NoError(t, printerFor(&out, formWide).Table(tab))
	require.Equal(t, strings.Repeat("x", 100)+"  b\n", strings.SplitAfter(out.String(), "\n")[1])
}

func TestYAMLKeepsJSONValues(t *testing.T) {
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

func TestRowsOfList(t *testing.T) {
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

func TestFactsOfOneItem(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printerFor(&out, "").Facts([]byte(`{"name":"mails","ready":12,"oldest":{"seconds":3.5},"queues":["a","b"],"none":null,
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
	require.ErrorContains(t, printerFor(&out, "").Facts([]byte("<html>")), "the sidecar's answer")
}

func TestAnswerIsNotJSON(t *testing.T) {
	require.ErrorContains(t, printerFor(&bytes.Buffer{}, FormJSON).Answer([]byte("<html>")), "no JSON")
}

func TestTextIsCutByTerminalCells(t *testing.T) {
	require.Equal(t, "short", cut("short", 5))
	require.Equal(t, "sho…", cut("short", 4))
	require.Equal(t, "é…", cut("éééé", 2))
	require.Equal(t, "日本…", cut("日本語です", 6), "wide characters take two cells")
	require.Equal(t, 10, Cells("日本語です"))
	require.Equal(t, 1, Cells("e\u0301"), "an accent takes none")
}

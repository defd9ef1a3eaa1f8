package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/cli/fieldmap"
	"github.com/millrace-jobs/millrace/wire"
)

// entryOf returns what a line enters.
func entryOf(text string) (*entry, error) {
	m := maker{name: "shop"}
	return m.entry(&line{number: 7, text: []byte(text), size: int64(len(text))})
}

func TestLinesBecomeEntries(t *testing.T) {
	for _, c := range []struct {
		text  string
		state State
		body  string
	}{
		{`{"jid":"a","class":"C","args":[9007199254740993, 1e400],"x" : { "y":[] }}`, Due,
			`{"command":"enqueue","key":"import:shop:a","job":{"jid":"a","class":"C","args":[9007199254740993, 1e400],"x" : { "y":[] }}}`},
		{`{"jid":"a","at":"2026-11-20T07:15:30.5Z","class":"C"}`, Scheduled,
			`{"command":"enqueue","key":"import:shop:a","at":1795158930.5,"job":{"jid":"a","class":"C"}}`},
		{`{"jid":"a","class":"C","at":1795158930500}`, Scheduled,
			`{"command":"enqueue","key":"import:shop:a","at":1795158930.5,"job":{"jid":"a","class":"C"}}`},
		{`{"jid":"a","class":"C","at":null}`, Due, `{"command":"enqueue","key":"import:shop:a","job":{"jid":"a","class":"C"}}`},
		{`{"jid":"a","class":"C","retry_count":2,"retry_at":1795158930,"error_class":"Timeout","error_message":"no <answer>"}`, Retry,
			`{"type":"retry","jid":"a","retry_at":1795158930,"retry_count":2,"error_class":"Timeout","error_message":"no <answer>","job":{"jid":"a","class":"C","retry_count":2}}`},
		{`{"jid":"a","class":"C","died_at":1795158930,"backtrace":"x"}`, Dead,
			`{"type":"dead_job","jid":"a","died_at":1795158930,"backtrace":"x","job":{"jid":"a","class":"C"}}`},
		{`{"type":"scheduled_job","jid":"a","scheduled_at":1795158930.25,"job":{"class":"C", "jid":"a"}}`, Scheduled,
			`{"command":"enqueue","key":"import:shop:a","at":1795158930.25,"job":{"class":"C", "jid":"a"}}`},
		{`{"jid":"a","scheduled_at":1795158930,"job":{"class":"C"}}`, Scheduled,
			`{"command":"enqueue","key":"import:shop:a","at":1795158930,"job":{"jid":"a","class":"C"}}`},
		{`{"type":"retry", "jid":"a","retry_at":1795158930.0,"mine":[1],"job":{"class":"C"} }`, Retry,
			`{"type":"retry", "jid":"a","retry_at":1795158930.0,"mine":[1],"job":{"class":"C"} }`},
		{`{"died_at":1795158930,"job":{"jid":"a","class":"C"},"millrace":{"offset":1}}`, Dead, `{"died_at":1795158930,"job":{"jid":"a","class":"C"}}`},
		{`{"jid":"a","job":{"jid":"a","class":"C"},"millrace":{"offset":1}}`, Due, `{"command":"enqueue","key":"import:shop:a","job":{"jid":"a","class":"C"}}`},
	} {
		e, err := entryOf(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.state, e.state, c.text)
		require.Equal(t, c.body, string(e.body), c.text)
		require.Equal(t, "a", e.jid)
		require.Equal(t, "C", e.class)
		require.Equal(t, "default", e.queue)
	}
}

func TestLinesThatAreRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"\xff":                                         "it is not valid UTF-8",
		`[{"class":"C"}]`:                              "a line is one object, and this one begins an array",
		`{"class":"C"`:                                 "it is not valid JSON at character 12: unexpected end of JSON input",
		`{"class":"C"} {}`:                             "it is not valid JSON at character 15",
		`"text"`:                                       "it is no JSON object",
		`{}`:                                           `this is no job: member "class" is missing`,
		`{"class":"C","jid":1}`:                        "jid is 1: it must be a text",
		`{"class":"C","args":{"a":1}}`:                 `args is {"a":1}: it must be an array`,
		`{"class":"C","queue":""}`:                     "queue name is empty",
		`{"class":"C","priority":11}`:                  `member "priority" must be a whole number from 0 to 10`,
		`{"class":"C","at":"soon"}`:                    `at is "soon": it must be seconds since 1970`,
		`{"class":"C","at":true}`:                      `at is true: it must be seconds since 1970`,
		`{"class":"C","at":1,"at":2}`:                  "at appears twice",
		`{"class":"C","at":1,"died_at":2}`:             "it has both at and died_at: a job is in one place",
		`{"type":"heartbeat","job":{}}`:                `type is "heartbeat": use scheduled_job, retry or dead_job`,
		`{"type":"retry","job":{"class":"C"}}`:         `member "retry_at" is missing`,
		`{"retry_at":1,"job":{}}`:                      `member "class" is missing`,
		`{"scheduled_at":1,"x":1,"job":{"class":"C"}}`: `the member "x" stands beside the job, where it would be lost`,
		`{"class":"C","args":["` + strings.Repeat("x", maxKeyed) + `"]}`: "a job that is due or scheduled has at most 983040",
	} {
		_, err := entryOf(text)
		require.ErrorContains(t, err, reason, wire.Shorten(text, 60))
	}
	m := maker{name: "shop"}
	_, err := m.entry(&line{number: 1, size: longestLine + 1})
	require.EqualError(t, err, "the line has more than 16777216 bytes")
}

// Two equal lines without a jid are two jobs. A repeat of the file makes the same jids.
func TestJobsWithoutAJID(t *testing.T) {
	jids := map[string]bool{}
	for _, text := range []string{`{"class":"C"}`, `{"class":"C","jid":null}`, `{"class":"C","jid":""}`, `{"died_at":1,"job":{"class":"C"}}`, `{"scheduled_at":1,"job":{"class":"C"}}`} {
		for number := range int64(2) {
			m := maker{name: "shop"}
			e, err := m.entry(&line{number: number, text: []byte(text)})
			require.NoError(t, err, text)
			require.Len(t, e.jid, 32)
			require.False(t, jids[e.jid])
			jids[e.jid] = true
			again, err := m.entry(&line{number: number, text: []byte(text)})
			require.NoError(t, err)
			require.Equal(t, e.body, again.body)
			require.Contains(t, string(e.body), `"jid":"`+e.jid+`"`)
			require.Equal(t, 1, strings.Count(string(e.body), `"jid":`))
		}
	}
}

func TestKeysArePrintable(t *testing.T) {
	m := maker{name: "shop"}
	require.Equal(t, "import:shop:a b", m.key("a b"))
	for _, jid := range []string{"é", strings.Repeat("x", 300), "\x00"} {
		key := m.key(jid)
		require.Regexp(t, `^import:shop:sha256-[0-9a-f]{32}$`, key)
		require.NotEqual(t, key, m.key(jid+"x"))
	}
}

func TestMappedLinesAreChecked(t *testing.T) {
	fields, err := fieldmap.Parse([]byte("class: k\njid: {from: id, prefix: row-}\ndied_at: {from: gone, unit: iso}\nerror_message: why"))
	require.NoError(t, err)
	m := maker{name: "shop", fields: fields}
	e, err := m.entry(&line{number: 1, text: []byte(`{"k":"C","id":3,"gone":"2026-11-20 07:15:30","why":"late"}`)})
	require.NoError(t, err)
	require.Equal(t, `{"type":"dead_job","jid":"row-3","died_at":1795158930,"error_message":"late","job":{"jid":"row-3","class":"C"}}`, string(e.body))
	_, err = m.entry(&line{number: 1, text: []byte(`{"id":3}`)})
	require.ErrorContains(t, err, `member "class" is missing`)
}

func TestItemsAreExportedAsTheyWerePublished(t *testing.T) {
	for _, record := range []string{
		`{"type":"retry","jid":"a", "retry_at":1795158930.0,"x":12345678901234567890,"job":{"class":"C","args":["<&>"]} }`,
		`{"died_at":1,"job":{"class":"C","jid":"a"}}`,
	} {
		stream := wire.Retries
		if gjson.Get(record, "died_at").Exists() {
			stream = wire.DeadJobs
		}
		e, err := wire.ParseEntry(stream, 3, []byte(record))
		require.NoError(t, err)
		got, incomplete, err := WithoutPlace(e.Item(3))
		require.NoError(t, err)
		require.Empty(t, incomplete)
		require.Equal(t, record, string(got))
	}
	for added, reason := range map[string]string{`{"omitted":"too large"}`: "could not be loaded: too large", `{"redacted":true}`: "hidden from this user"} {
		_, incomplete, err := WithoutPlace(fmt.Appendf(nil, `{"jid":"a","millrace":%s}`, added))
		require.NoError(t, err)
		require.Contains(t, incomplete, reason)
	}
}

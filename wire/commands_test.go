package wire

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOperationsAreChecked(t *testing.T) {
	one, negative := int64(1), int64(-2)
	at, never := 1.8e9, math.NaN()
	all := &Filter{}
	for name, o := range map[string]*Operation{
		"":                             {Action: CommandRetry, Stream: Retries, Filter: all, Expected: &one, AsOf: &one, Rate: 10},
		"action \"explode\" is":        {Action: "explode", Stream: Retries, Filter: all},
		"action retry needs":           {Action: CommandRetry, Stream: ScheduledJobs, Filter: all},
		"needs jids or a filter":       {Action: CommandRetry, Stream: Retries},
		"10001 jids are too many":      {Action: CommandRetry, Stream: Retries, JIDs: strings.Fields(strings.Repeat("j ", maxJIDs+1))},
		"a jid is empty":               {Action: CommandRetry, Stream: Retries, JIDs: []string{"a", ""}},
		"change needs at":              {Action: CommandChange, Stream: Retries, Filter: all},
		"and nothing else does":        {Action: CommandKill, Stream: Retries, Filter: all, At: &at},
		"at is out of range":           {Action: CommandChange, Stream: Retries, Filter: all, At: &never},
		"rate must be":                 {Action: CommandKill, Stream: Retries, Filter: all, Rate: math.Inf(1)},
		"expected_count goes with":     {Action: CommandKill, Stream: Retries, JIDs: []string{"a"}, Expected: &one},
		"as_of must be":                {Action: CommandKill, Stream: Retries, Filter: all, AsOf: &negative},
		"the filter is not valid":      {Action: CommandKill, Stream: Retries, Filter: &Filter{Text: "\xff"}},
		"args: \"0\" has no colon":     {Action: CommandKill, Stream: Retries, Filter: &Filter{Args: "0"}},
		"undo needs the id":            {Action: CommandUndo},
		"undo is about what":           {Action: CommandUndo, Undoes: "op", Filter: all},
		"rate must be a number above ": {Action: CommandUndo, Undoes: "op", Rate: -1},
	} {
		err := o.Check()
		if name == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, name)
	}
	require.NoError(t, (&Operation{Action: CommandUndo, Undoes: "op"}).Check())
}

// The steps of a path may have any name, and the value any text.
func TestArgsAreSplit(t *testing.T) {
	escape := strings.NewReplacer(`\`, `\\`, `.`, `\.`, `:`, `\:`)
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(rapid.StringN(1, 8, -1), 1, maxSteps).Draw(t, "path")
		value := rapid.StringN(0, 20, -1).Draw(t, "value")
		steps := make([]string, len(path))
		for i, step := range path {
			steps[i] = escape.Replace(step)
		}
		found, rest, err := SplitArgs(strings.Join(steps, ".") + ":" + value)
		require.NoError(t, err)
		require.Equal(t, path, found)
		require.Equal(t, value, rest)
	})
}

func TestInvalidArgsSayWhatIsWrong(t *testing.T) {
	for args, want := range map[string]string{
		"":                                    "no colon",
		"0.customer":                          "no colon",
		`0\:42`:                               "no colon",
		":42":                                 "no path",
		".:42":                                "an empty step",
		"0..sku:42":                           "an empty step",
		"0.:42":                               "an empty step",
		`0\`:                                  "a backslash that is not before",
		`0.a\b:42`:                            "a backslash that is not before",
		strings.Repeat("0.", maxSteps) + "0:": "over 32 steps",
		strings.Repeat("é", maxArgs) + ":":    "has 1001 characters, at most 1000",
	} {
		_, _, err := SplitArgs(args)
		require.ErrorContains(t, err, want, args)
		require.ErrorContains(t, err, "such as 0.customer:42", args)
		require.Less(t, len(err.Error()), 300, args)
	}
	_, _, err := SplitArgs(strings.Repeat("0.", maxSteps-1) + "0:" + strings.Repeat("é", maxArgs-2*maxSteps))
	require.NoError(t, err, "this is as long as it may be")
}

// An operation has drifted if its filter matches over one percent more or fewer entries than the
// user saw.
func TestDrift(t *testing.T) {
	expected := int64(1000)
	o := &Operation{Expected: &expected}
	for found, drifted := range map[int64]bool{1000: false, 990: false, 1010: false, 989: true, 1011: true} {
		require.Equal(t, drifted, o.Drifted(found), found)
	}
	require.False(t, (&Operation{}).Drifted(5), "no number was expected")
	require.EqualValues(t, 7, (&Operation{Skips: []Skip{{"gone", 3}, {"fired", 4}}}).Skipped())
}

func TestCommandsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{"command":"operate"}`:                                                                  "needs an operation",
		`{"command":"cancel","operation":{}}`:                                                    "needs an operation",
		`{"command":"operate","operation":{"action":"retry"}}`:                                   "needs an id",
		`{"command":"operate","id":"x","operation":{"action":"explode"}}`:                        "is not known",
		`{"command":"pause"}`:                                                                    "needs a queue",
		`{"command":"resume","queue":"a\nb"}`:                                                    "control character",
		`{"command":"dismiss","stream":"retries"}`:                                               "needs the stream and offset",
		`{"command":"enqueue","job":{"class":"A"}}`:                                              "needs a key",
		`{"command":"enqueue","key":"é","job":{"class":"A"}}`:                                    "printable ASCII",
		`{"command":"enqueue","key":"k"}`:                                                        "needs a job",
		`{"command":"enqueue","key":"k","job":[]}`:                                               "needs a job",
		`{"command":"enqueue","key":"k","job":{"class":7}}`:                                      "class",
		`{"command":"enqueue","key":"k","at":-1e300,"job":{"class":"A"}}`:                        "enqueue",
		`{"command":"retry","stream":"retries"}`:                                                 "needs a jid",
		`{"command":"retry","jid":"j","stream":"scheduled_jobs"}`:                                "needs a stream",
		`{"command":"change","jid":"j","stream":"retries","changes":{"at":"soon"}}`:              "at",
		`{"command":"cancel","operation":{"id":"o"}}`:                                            "",
		`{"command":"pause","queue":"mails"}`:                                                    "",
		`{"command":"dismiss","stream":"retries","offset":3}`:                                    "",
		`{"command":"enqueue","key":"k","at":1800000000,"job":{"class":"A"}}`:                    "",
		`{"command":"operate","id":"x","operation":{"action":"undo","undoes":"o","rate":2}}`:     "",
		`{"command":"change","jid":"j","stream":"scheduled_jobs","changes":{"queue":"reports"}}`: "",
	} {
		var c Command
		require.NoError(t, json.Unmarshal([]byte(text), &c), text)
		err := c.check()
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}

// A keyed enqueue makes one entry with the job's own bytes. A checksum identifies the request.
func TestKeyedEnqueue(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := Command{Command: CommandEnqueue, Key: "k", Job: []byte(`{"class":"A","args":[9007199254740993],"x":1}`)}
	record, e, err := c.Entry(now, "new")
	require.NoError(t, err)
	require.Equal(t, "new", e.JID)
	require.EqualValues(t, now.Unix(), e.At.Unix())
	require.Contains(t, string(record), `"args":[9007199254740993]`)

	at := 1.9e9
	later := c
	later.At = &at
	_, e, err = later.Entry(now, "new")
	require.NoError(t, err)
	require.EqualValues(t, at, e.At.Unix())
	require.Equal(t, c.Sum(), c.Sum())
	require.NotEqual(t, c.Sum(), later.Sum())
	other := c
	other.Job = []byte(`{"class":"B"}`)
	require.NotEqual(t, c.Sum(), other.Sum())
}

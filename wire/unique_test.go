package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func uniqueJob(t *testing.T, unique, args string) Job {
	t.Helper()
	job, err := ParseJob(fmt.Appendf(nil, `{"jid":"j","class":"C","queue":"q","args":%s,"gate":{"unique":%s}}`, args, unique))
	require.NoError(t, err, unique)
	return job
}

func TestUniqueMembers(t *testing.T) {
	full := uniqueJob(t, `{"by":["args.0.a","queue","queue"],"while":"waiting","for":1.5,"on":"replace","wait":2,"max":60}`, "[]")
	require.Equal(t, &Unique{By: []string{"args.0.a", "queue"}, Waiting: true, Replace: true, For: 1500 * time.Millisecond, Wait: 2 * time.Second, Max: time.Minute}, full.Unique)
	usual := uniqueJob(t, `{}`, "[]")
	require.Equal(t, &Unique{By: []string{"args", "class", "queue"}}, usual.Unique)
	require.Equal(t, "k", uniqueJob(t, `{"key":"k","while":"unfinished","on":"keep"}`, "[]").Unique.Key)
	none, err := ParseJob([]byte(`{"class":"C","gate":{"at":5,"unique":null}}`))
	require.NoError(t, err)
	require.Nil(t, none.Unique)
	require.Equal(t, time.Unix(5, 0).UTC(), none.GateAt)
	for unique, why := range map[string]string{
		`true`: "must be an object", `{"key":""}`: "is empty", `{"key":5}`: "must be a string", `{"key":"a","by":["args"]}`: "exclude each other",
		`{"by":[]}`: "1 to 16 parts", `{"by":["color"]}`: "use class, queue", `{"by":["args."]}`: "use class, queue", `{"by":["args..a"]}`: "use class, queue",
		`{"while":"ever"}`: `"unfinished" or "waiting"`, `{"on":"drop"}`: `"keep" or "replace"`, `{"for":0}`: "above 0", `{"for":"1h"}`: "above 0",
		`{"for":1e12}`: "above 0", `{"max":5}`: `needs "wait"`, `{"key":"a","key":"b"}`: "appears twice",
	} {
		_, err := ParseJob(fmt.Appendf(nil, `{"class":"C","gate":{"unique":%s}}`, unique))
		require.ErrorContains(t, err, why, unique)
		require.ErrorContains(t, err, "unique", unique)
	}
}

func TestKeysOfEqualJobsAreEqual(t *testing.T) {
	id := func(unique, args string) UniqueID {
		job := uniqueJob(t, unique, args)
		return UniqueIDOf(&job)
	}
	same := id(`{}`, `[{"a":1,"b":["\u00e9",null]}]`)
	for _, args := range []string{`[ {"b" : ["é" , null], "a":1} ]`, "[{\"a\":1,\t\"b\":[\"\\u00E9\",null]}]", `[{"a":2,"b":["é",null],"a":1}]`} {
		require.Equal(t, same, id(`{"by":["queue","class","args"]}`, args), args)
	}
	different := map[UniqueID]string{same: "the first"}
	for _, c := range [][2]string{
		{`{}`, `[{"a":1.0,"b":["é",null]}]`}, {`{}`, `[{"a":"1","b":["é",null]}]`}, {`{}`, `[{"a":1,"b":["é"]}]`}, {`{}`, `[]`}, {`{}`, `[[]]`}, {`{}`, `[{}]`},
		{`{}`, `["ab"]`}, {`{}`, `["a","b"]`}, {`{}`, `[12]`}, {`{}`, `[1,2]`},
		{`{"by":["args"]}`, `[]`}, {`{"by":["class"]}`, `[]`}, {`{"by":["jid"]}`, `[]`}, {`{"key":"k"}`, `[]`}, {`{"key":"by:"}`, `[]`},
		{`{"by":["args.0"]}`, `[null]`}, {`{"by":["args.0"]}`, `[]`}, {`{"by":["args.0.a"]}`, `[{"a":1}]`}, {`{"by":["args.1"]}`, `[0,1]`},
	} {
		got := id(c[0], c[1])
		require.Empty(t, different[got], "%s %s", c[0], c[1])
		different[got] = c[0] + c[1]
	}
	require.Equal(t, id(`{"by":["args.0.a"]}`, `[{"a":1}]`), id(`{"by":["args.0.a"]}`, `[{"a":1,"b":2},3]`))
	require.Equal(t, UniqueKey("k"), id(`{"key":"k"}`, `[]`))
	require.Equal(t, "k", UniqueKey("k").Given())
	require.Empty(t, same.Given())
	require.NoError(t, CheckUniqueHash(same.Hash()))
	for _, wrong := range []string{"", "x", same.Hash() + "00", "ABCDEF" + same.Hash()[6:]} {
		require.Error(t, CheckUniqueHash(wrong), wrong)
	}
}

func TestAdmissionIsReadBack(t *testing.T) {
	a := &Admission{Due: time.UnixMicro(1_800_000_000_123_456).UTC(), First: 7}
	require.Equal(t, a, parseAdmission(a.String()))
	for _, wrong := range []any{nil, "", "5", "5 x", int64(5)} {
		require.Nil(t, parseAdmission(wrong))
	}
}

func TestGatedJobIsDueAtItsTime(t *testing.T) {
	r := &Record{Stream: Gated, Offset: 3, Time: time.Unix(9, 0), UserID: "m", ReplyTo: "amq.x", CorrelationID: "c", Key: Gated,
		Body: []byte(`{"jid":"j","class":"C","gate":{"at":50,"unique":{}}}`)}
	e := ReadEntry(r, true)
	require.Equal(t, []any{time.Unix(50, 0).UTC(), "amq.x", "c"}, []any{e.At, e.ReplyTo, e.CorrelationID})
	r.Headers = map[string]any{HeaderReplaces: int64(1), HeaderAdmitted: "70000000 5"}
	require.Equal(t, time.Unix(70, 0).UTC(), ReadEntry(r, true).At)
	r.Headers = Dispatch{Op: OpFired, Stream: Gated, Offset: 1, JIDTag: "j"}.Headers()
	require.Equal(t, time.Unix(9, 0), ReadEntry(r, true).At, "a fire that found no queue")
}

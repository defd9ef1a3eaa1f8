package wire

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func change(t require.TestingT, stream, record, changes string) string {
	e, err := ParseEntry(stream, 3, []byte(record))
	require.NoError(t, err)
	c, err := ParseChanges(stream, []byte(changes))
	require.NoError(t, err)
	out, err := e.Change(c)
	require.NoError(t, err)
	return string(out)
}

func TestChangeKeepsOtherBytes(t *testing.T) {
	const record = `{ "x":1.00, "scheduled_at" : 1.7e9 ,"jid":"j","job" : {"args":[ 1, 2.50 ], "é\u00e9":"<&>", "class":"C" , "queue":"q","priority":0}, "z":[ ]}`
	for changes, want := range map[string]string{
		`{"at":1800000000.5}`:                               `{ "x":1.00, "scheduled_at" : 1800000000.5 ,"jid":"j","job" : {"args":[ 1, 2.50 ], "é\u00e9":"<&>", "class":"C" , "queue":"q","priority":0}, "z":[ ]}`,
		`{"at":"2027-01-15T09:00:00+01:00","queue":"ü\"x"}`: `{ "x":1.00, "scheduled_at" : 1800000000 ,"jid":"j","job" : {"args":[ 1, 2.50 ], "é\u00e9":"<&>", "class":"C" , "queue":"ü\"x","priority":0}, "z":[ ]}`,
		`{"args":[ "a", 1.0 ],"priority":9}`:                `{ "x":1.00, "scheduled_at" : 1.7e9 ,"jid":"j","job" : {"args":[ "a", 1.0 ], "é\u00e9":"<&>", "class":"C" , "queue":"q","priority":9}, "z":[ ]}`,
	} {
		require.Equal(t, want, change(t, ScheduledJobs, record, changes))
	}
}

func TestChangeAddsMissingMembers(t *testing.T) {
	out := change(t, Retries, `{"retry_at":1,"job":{"class":"C"}}`, `{"queue":"q","args":[1],"priority":3,"at":2}`)
	e, err := ParseEntry(Retries, 9, []byte(out))
	require.NoError(t, err)
	require.Equal(t, DerivedJID(Retries, 3, []byte(`{"retry_at":1,"job":{"class":"C"}}`)), e.JID, "it keeps the jid that it was known by")
	require.Equal(t, []any{"q", uint8(3), time.Unix(2, 0).UTC()}, []any{e.Job.Queue, e.Job.Priority, e.At})
}

func TestInvalidChangesAreRefused(t *testing.T) {
	for changes, reason := range map[string]string{
		``: "nothing is to be changed", `{}`: "nothing is to be changed", `[]`: "not a JSON object", `{`: "not valid JSON",
		`{"when":1}`: `"when" cannot be changed`, `{"at":null}`: "is null", `{"at":1,"at":2}`: "appears twice", `{"a\u0074":2}`: "escapes",
		`{"at":"tomorrow"}`: "must be seconds", `{"at":true}`: "must be a number", `{"at":1e300}`: "out of range", `{"at":"0000-01-01T00:00:00Z"}`: "out of range",
		`{"queue":""}`: "empty", `{"queue":7}`: "must be a string", `{"priority":11}`: "from 0 to 10", `{"priority":1.5}`: "whole number",
		`{"args":"x"}`: "array or an object",
	} {
		_, err := ParseChanges(ScheduledJobs, []byte(changes))
		require.ErrorContains(t, err, reason, changes)
	}
	_, err := ParseChanges(DeadJobs, []byte(`{"at":1}`))
	require.ErrorContains(t, err, "dead job has no time")

	e, err := ParseEntry(ScheduledJobs, 0, []byte(`{"scheduled_at":1,"job":{"class":"C","args":[1],"args":[2]}}`))
	require.NoError(t, err)
	_, err = e.Change(Changes{Args: json.RawMessage(`[]`)})
	require.ErrorContains(t, err, "appears twice")
	_, err = e.Change(Changes{Queue: new(string)})
	require.ErrorContains(t, err, "could not be read")
}

func TestChangedTimesAreParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(-62e15, 253e15).Draw(t, "at")).UTC()
		e, err := ParseEntry(ScheduledJobs, 0, []byte(`{"scheduled_at":1,"job":{"class":"C"}}`))
		require.NoError(t, err)
		out, err := e.Change(Changes{At: &at})
		require.NoError(t, err)
		again, err := ParseEntry(ScheduledJobs, 0, out)
		require.NoError(t, err)
		require.WithinDuration(t, at, again.At, 50*time.Microsecond, "what a float can say of years far away")
		if at.Year() > 1900 && at.Year() < 2200 {
			require.Equal(t, at, again.At)
		}
	})
	c, err := ParseChanges(ScheduledJobs, []byte(`{"at":"2030-01-01T00:00:00.0000001Z"}`))
	require.NoError(t, err)
	require.Equal(t, 1000, c.At.Nanosecond(), "never early")
}

func TestAnnouncement(t *testing.T) {
	dead := int64(0)
	for _, a := range []Announcement{
		{What: TypeChanged, Stream: Retries, Offset: 9, Replaces: 4, JIDTag: "j", Command: "c", Actor: "ann", Operation: "o"},
		{What: TypeUndone, Stream: Retries, Offset: 9, Replaces: 4, JIDTag: "j", Undoes: 17, Dead: &dead},
	} {
		got, ok := AnnouncementOf(&Record{Stream: Retries, Offset: 9, Headers: a.Headers(3)})
		require.True(t, ok)
		got.JIDTag = "j"
		require.Equal(t, a, got)
		j, err := ParseJournal(a.Record().Append(Journal, 1, 0).Body)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(a.What, a.Replaces, a.Offset), fmt.Sprint(j.Type, j.Offset, *j.By))
	}
	_, ok := AnnouncementOf(&Record{Headers: map[string]any{HeaderAnnounces: "other"}})
	require.False(t, ok)
	require.True(t, Undoable(TypeKilled))
	require.False(t, Undoable(OpFired))
}

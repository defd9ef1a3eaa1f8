package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// jsonText draws JSON as people and programs may write it: with spaces, escapes and duplicate
// names.
func jsonText(t *rapid.T, depth int) string {
	kinds := 5
	if depth == 0 {
		kinds = 3
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1e400", "9007199254740993", "-1.5E-7"}).Draw(t, "atom")
	case 1, 2:
		return jsonString(t)
	case 3:
		items := make([]string, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range items {
			items[i] = space(t) + jsonText(t, depth-1) + space(t)
		}
		return "[" + strings.Join(items, ",") + spaceIf(t, len(items) == 0) + "]"
	}
	return jsonObject(t, depth-1)
}

func jsonObject(t *rapid.T, depth int) string {
	items := make([]string, rapid.IntRange(0, 4).Draw(t, "members"))
	for i := range items {
		name := jsonString(t)
		if rapid.Bool().Draw(t, "known") {
			name = `"` + rapid.SampledFrom([]string{"jid", "retry_count", "class", "job", "j.id", "jid|x", "#", "@this", "*"}).Draw(t, "name") + `"`
		}
		items[i] = space(t) + name + space(t) + ":" + space(t) + jsonText(t, depth) + space(t)
	}
	return "{" + strings.Join(items, ",") + spaceIf(t, len(items) == 0) + "}"
}

func jsonString(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "é", "\xff", `\"`, `\\`, `\/`, `\n`, `\u0000`, `\ud800`, `\ud83d\ude00`, "{", "}", "[", "]", ":", ",",
		"jid", `\u006aid`, "\u2028", "<"}), 0, 6).Draw(t, "text")
	return `"` + strings.Join(parts, "") + `"`
}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r "}).Draw(t, "space")
}

func spaceIf(t *rapid.T, wanted bool) string {
	if !wanted {
		return ""
	}
	return space(t)
}

func TestEditKeepsOtherBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := jsonObject(t, 3)
		require.True(t, json.Valid([]byte(raw)), raw)
		name := rapid.SampledFrom([]string{"jid", "retry_count"}).Draw(t, "set")
		if _, err := shared.ParseObject(raw, shared.Set(name)); err != nil {
			t.Skip("refused before it is edited")
		}
		value := rapid.SampledFrom([]string{"17", `"\u0000<é"`}).Draw(t, "value")
		before := strings.Clone(raw)
		got, err := shared.SetRaw([]byte(raw), name, value)
		require.NoError(t, err)
		require.Equal(t, before, raw)
		require.Equal(t, setByReference(t, []byte(raw), name, value), string(got))
	})
}

func TestBodyOfInvalidJob(t *testing.T) {
	e := Entry{Stream: Retries, Job: Job{Raw: []byte(`{"class":"A","class":"B"}`)}}
	_, err := e.Body(time.Now())
	require.EqualError(t, err, `member "class" appears twice`)
	_, err = e.Dead(time.Now(), "", "")
	require.EqualError(t, err, `member "class" appears twice`)
	_, err = shared.SetRaw([]byte(`{}`), "", "1")
	require.EqualError(t, err, "wire: set : path cannot be empty")
}

// An escaped text can take six times its size. A dead job that grew over the limit could never be
// read again.
func TestErrorsOfDeadJobsAreCut(t *testing.T) {
	e, err := ParseEntry(Retries, 0, []byte(`{"jid":"j","retry_at":1,"error_class":"`+strings.Repeat("é", 1000)+`","error_message":"`+
		strings.Repeat("<", 10<<20)+`","job":{"class":"A"}}`))
	require.NoError(t, err)
	raw, err := e.Dead(time.Unix(1, 0), e.ErrorClass, e.ErrorMessage)
	require.NoError(t, err)
	dead, err := ParseEntry(DeadJobs, 0, raw)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("é", 512)+"…", dead.ErrorClass)
	require.Equal(t, strings.Repeat("<", 64<<10)+"…", dead.ErrorMessage)
}

func TestDeadJobTooLarge(t *testing.T) {
	jid := strings.Repeat("j", 9<<20)
	e, err := ParseEntry(ScheduledJobs, 0, []byte(`{"scheduled_at":1,"job":{"class":"A","jid":"`+jid+`"}}`))
	require.NoError(t, err)
	_, err = e.Dead(time.Unix(1, 0), "", "")
	require.ErrorContains(t, err, "as a dead job it has 18874")
}

func TestSamePublish(t *testing.T) {
	entry := func(stream, body string) Entry {
		e, err := ParseEntry(stream, 0, []byte(body))
		require.NoError(t, err)
		return e
	}
	a := entry(ScheduledJobs, `{"jid":"j","scheduled_at":1,"job":{"class":"A"}}`)
	require.True(t, SamePublish(a, a))
	require.False(t, SamePublish(a, entry(ScheduledJobs, `{"jid":"j","scheduled_at":1,"job":{"class":"A"} }`)), "other bytes")
	require.False(t, SamePublish(a, entry(ScheduledJobs, `{"jid":"k","scheduled_at":1,"job":{"class":"A"}}`)), "another jid")
	b := entry(Retries, `{"jid":"j","retry_at":1,"retry_count":2,"job":{"class":"A"}}`)
	require.False(t, SamePublish(a, b), "another stream")
	require.True(t, SamePublish(b, entry(Retries, `{"jid":"j","retry_at":2,"retry_count":2,"job":{"class":"A","x":1}}`)), "the same failed attempt")
	require.False(t, SamePublish(b, entry(Retries, `{"jid":"j","retry_at":1,"retry_count":3,"job":{"class":"A"}}`)), "the next attempt")
	require.False(t, SamePublish(b, entry(Retries, `{"jid":"j","retry_at":1,"retry_count":2,"job":{"class":"B"}}`)), "another job")
}

func TestShorten(t *testing.T) {
	require.Equal(t, "abc", Shorten("abc", 3))
	require.Equal(t, "ab…", Shorten("abc", 2))
	require.Equal(t, "…", Shorten("é", 1))
	require.Equal(t, "…", Shorten("\x80\x80", 1))
}

// An entry that is carried over keeps a derived jid. Everything else stays as it is.
func TestWithEntryJID(t *testing.T) {
	for record, named := range map[string]bool{
		`{"scheduled_at":1,"job":{"class":"A"}}`:                      false,
		`{"jid":"","scheduled_at":1,"job":{"class":"A","jid":null} }`: false,
		`{"jid":"a","scheduled_at":1,"job":{"class":"A"}}`:            true,
		`{"scheduled_at":1,"job":{"class":"A","jid":"a"}}`:            true,
	} {
		e, err := ParseEntry(ScheduledJobs, 3, []byte(record))
		require.NoError(t, err)
		carried, err := WithEntryJID(e.Raw, &e)
		require.NoError(t, err)
		again, err := ParseEntry(ScheduledJobs, 99, carried)
		require.NoError(t, err)
		require.Equal(t, []string{e.JID, e.Job.JID}, []string{again.JID, again.Job.JID})
		if named {
			require.Equal(t, record, string(carried))
		} else {
			require.Equal(t, setByReference(t, []byte(record), "jid", shared.Quote(e.JID)), string(carried))
		}
		m := Carry(ScheduledJobs, e.JID, carried, map[string]any{HeaderReplaces: int64(3)})
		require.Equal(t, Message{Key: ScheduledJobs, MessageID: e.JID, Headers: map[string]any{HeaderReplaces: int64(3)}, Body: carried}, m)
	}
	for record, reason := range map[string]string{
		`{"jid":"a","jid":"b","job":{}}`: `member "jid" appears twice`,
		`{"job":{"jid":"a","jid":"b"}}`:  `member "jid" appears twice`,
	} {
		_, err := WithEntryJID([]byte(record), &Entry{})
		require.EqualError(t, err, reason)
	}
}

func TestLargestEntryWithoutJIDCanBeCarriedOver(t *testing.T) {
	head, tail := `{"scheduled_at":1,"job":{"class":"A","args":"`, `"}}`
	e, err := ParseEntry(ScheduledJobs, 3, []byte(head+strings.Repeat("x", maxNameless-len(head)-len(tail))+tail))
	require.NoError(t, err)
	carried, err := WithEntryJID(e.Raw, &e)
	require.NoError(t, err)
	_, err = ParseEntry(ScheduledJobs, 99, carried)
	require.NoError(t, err)
}

package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func TestFailuresKeepBytesOfJob(t *testing.T) {
	at, due := time.Unix(1_800_000_000, 0), time.Unix(1_800_000_060, 0)
	job := []byte(`{"class":"A","args":[1e400, "\u0000"],"jid":"j"}`)
	f := Failure{JID: "j", RetryCount: 2, ErrorClass: "Boom", ErrorMessage: "it \xff broke", Backtrace: "a\nb"}
	retry, err := ParseEntry(Retries, 0, f.Retry("mails", job, at, due))
	require.NoError(t, err)
	require.EqualValues(t, 3, gjson.GetBytes(f.Retry("mails", job, at, due), "retry_count").Int())
	require.EqualValues(t, due.Unix(), retry.At.Unix())
	require.Equal(t, "mails", retry.Job.Queue, "it comes back where it was")

	dead := f.Dead("mails", job, ReasonPoison, at)
	_, err = ParseEntry(DeadJobs, 0, dead)
	require.NoError(t, err)
	require.Equal(t, "poison", gjson.GetBytes(dead, "reason").String())
	require.Equal(t, "it \uFFFD broke", gjson.GetBytes(dead, "error_message").String())
	require.Contains(t, string(dead), `"args":[1e400, "\u0000"]`)
}

func TestProbesRoundTrip(t *testing.T) {
	p := Probe{Epoch: 7, Number: 3, Confirmed: 2, Routed: 99}
	m := p.To("own")
	require.Equal(t, []string{ExchangeFire, "own"}, []string{m.Exchange, m.Key})
	back, ok := ProbeOf(m.Headers)
	require.True(t, ok)
	require.Equal(t, p, back)
	_, ok = ProbeOf(map[string]any{HeaderOp: OpFired})
	require.False(t, ok)
	unrouted := UnroutedProbe()
	_, ok = ProbeOf(unrouted.Headers)
	require.True(t, ok)
	require.Equal(t, []string{ExchangeRoute, ""}, []string{unrouted.Exchange, unrouted.Key})
}

// Newer builds may write more members. They are ignored.
func TestRollupsIgnoreUnknownMembers(t *testing.T) {
	r, err := ParseRollup([]byte(`{"type":"rollup","format":1,"to":3,"moreover":{},"rows":[{"minute":60,"class":"A","queue":"q","success":2,"moreover":[1]}]}`))
	require.NoError(t, err)
	require.Equal(t, []RollupRow{{Minute: 60, Class: "A", Queue: "q", Success: 2}}, r.Rows)
}

func TestRollupsRoundTrip(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := Rollup{Type: TypeRollup, From: 3, To: 9, Rows: []RollupRow{{Minute: 30_000_000, Class: "A", Queue: "q", Success: 4, Attempts: []int64{3, 0, 1}, Errors: map[string]int64{"Boom": 1}}}}
	m, err := r.Message(now)
	require.NoError(t, err)
	require.Equal(t, []string{Rollups, TypeRollup}, []string{m.Key, m.Type})
	back, err := ParseRollup(m.Body)
	require.NoError(t, err)
	r.Format = Format
	require.Equal(t, r, back)
	for text, want := range map[string]string{
		`{"type":"rollup","from":3,"to":3}`: "covers no records",
		`{"type":"deploy"}`:                 "label",
		`{"type":"else"}`:                   "must be rollup or deploy",
		`{"type":"deploy","label":7}`:       "roll-up",
		`nothing`:                           "",
	} {
		_, err := ParseRollup([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

// A job that is moved names its new queue, so that a retry goes there too. A message that is not a
// job is passed on unchanged.
func TestMovedJobs(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	m := MovedJob(Delivery{MessageID: "j", Priority: 4, Headers: map[string]any{HeaderTraceparent: trace, "other": "x"},
		Body: []byte(`{"class":"A","args":[1e400],"queue":"old"}`)}, "new", now)
	require.Equal(t, `{"class":"A","args":[1e400],"queue":"new"}`, string(m.Body))
	require.Equal(t, []string{ExchangeRoute, "new", "j", "A"}, []string{m.Exchange, m.Key, m.MessageID, m.Type})
	require.Equal(t, map[string]any{HeaderTraceparent: trace}, m.Headers)
	require.EqualValues(t, 4, m.Priority)
	require.Equal(t, "garbage", string(MovedJob(Delivery{Body: []byte("garbage")}, "new", now).Body))
}

func TestControlMessages(t *testing.T) {
	m := Controls{ID: "c", Op: ControlPause, Identity: "*", Queue: "mails", Actor: "ann"}.Message(time.Unix(1, 0))
	require.Equal(t, []string{Control, "c"}, []string{m.Exchange, m.MessageID})
	require.JSONEq(t, `{"id":"c","op":"pause","identity":"*","queue":"mails","at":0,"actor":"ann"}`, string(m.Body))
	m = Controls{ID: "c", Op: ControlCancel, Identity: "h:1:x", JID: "j"}.Message(time.Unix(1, 0))
	require.JSONEq(t, `{"id":"c","op":"cancel","identity":"h:1:x","jid":"j","at":0}`, string(m.Body))
}

func TestNotesAreComplete(t *testing.T) {
	for reason, n := range map[string]*Noted{
		"":                                 {Op: NotedCancelled, Identity: "h:1:x", JID: "j"},
		"command note needs the jid":       {Op: NotedCancelled, Identity: "h:1:x"},
		"command note needs an identity":   {Op: NotedCancelled, JID: "j"},
		"command note does not know what ": {Op: "paused", Identity: "*"},
		"command note needs a queue":       {Op: NotedPurged},
	} {
		err := n.check()
		require.Equal(t, reason == "", err == nil, "%v", err)
		if err != nil {
			require.Contains(t, err.Error(), reason)
		}
	}
}

func TestSmallReaders(t *testing.T) {
	require.Equal(t, "opened", JournalType([]byte(`{"type":"opened","at":1}`)))
	require.Equal(t, "mails", QueueName("queue.mails"))
	require.Equal(t, "mails", QueueName("mails"))
	name := Fingerprint("A", "Timeout", `user 17 of "x@y.org" at 0xff, id 0af76519-16cd-43dd-8448-eb211c80319c`)
	require.True(t, IsFingerprint(name))
	require.Equal(t, name, Fingerprint("A", "Timeout", `user 4 of "z@w.org" at 0x1, id b7ad6b71-16cd-43dd-8448-eb211c80319c`))
	require.NotEqual(t, name, Fingerprint("B", "Timeout", `user 17 of "x@y.org" at 0xff, id 0af76519-16cd-43dd-8448-eb211c80319c`))
	require.False(t, IsFingerprint("Timeout"))
	require.Equal(t, "first", Normalised("  first\nsecond"))
	require.Len(t, Normalised(strings.Repeat("x", 2*maxMessage)), maxMessage)
}

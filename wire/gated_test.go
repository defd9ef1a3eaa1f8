package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A job in jobs.gated keeps the queue to which it was published, and the higher of its two
// priorities.
func TestGatedJobKeepsQueueAndPriority(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	for name, c := range map[string]struct {
		exchange, key string
		priority      uint8
		body          string
		want          string
		fault         string
	}{
		"for a queue that it does not name":  {exchange: ExchangeDirect, key: "mail", body: `{"class":"A"}`, want: `{"class":"A","queue":"mail"}`},
		"for another than it names":          {exchange: ExchangeRoute, key: "mail", body: `{"class":"A","queue":"post"}`, want: `{"class":"A","queue":"mail"}`},
		"for the one that it names":          {exchange: ExchangeFire, key: "mail", body: `{ "queue": "mail", "class":"A"}`, want: `{ "queue": "mail", "class":"A"}`},
		"to the stream itself":               {key: Gated, body: `{"class":"A","queue":"post"}`, want: `{"class":"A","queue":"post"}`},
		"through an exchange of a client's":  {exchange: "mine", key: "mail", body: `{"class":"A","queue":"post"}`, want: `{"class":"A","queue":"post"}`},
		"the message has the priority":       {key: Gated, priority: 7, body: `{"class":"A","priority":3}`, want: `{"class":"A","priority":7}`},
		"the job has the priority":           {key: Gated, priority: 3, body: `{"class":"A","priority":7}`, want: `{"class":"A","priority":7}`},
		"a priority that queues do not know": {key: Gated, priority: 255, body: `{"class":"A"}`, want: `{"class":"A","priority":10}`},
		"a key that is no queue's name":      {exchange: ExchangeDirect, key: "a\nb", body: `{"class":"A"}`, fault: "control character"},
		"no job":                             {exchange: ExchangeDirect, key: "mail", body: `[1]`, fault: "not a JSON object"},
		"no class":                           {exchange: ExchangeDirect, key: "mail", body: `{}`, fault: `"class" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := EntryOf(&Record{Stream: Gated, Offset: 5, Time: at, Exchange: c.exchange, Key: c.key, Priority: c.priority, Body: []byte(c.body)})
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, string(e.Raw))
			require.Equal(t, at, e.At)
			again, err := RereadEntry(Gated, 5, e.Raw)
			require.NoError(t, err)
			again.At = at
			require.Equal(t, e, again)
		})
	}
}

// A job of jobs.gated names its queue when it is fired, buried or shown.
func TestGatedJobNamesItsQueue(t *testing.T) {
	e, err := EntryOf(&Record{Stream: Gated, Offset: 5, Time: time.Unix(7, 0), Key: Gated, Body: []byte(`{"class":"A"}`)})
	require.NoError(t, err)
	require.Equal(t, DerivedJID(Gated, 5, []byte(`{"class":"A"}`)), e.JID)
	body, err := e.Body(time.Unix(9, 0))
	require.NoError(t, err)
	require.JSONEq(t, `{"class":"A","jid":"`+e.JID+`","queue":"default"}`, string(body))
	require.JSONEq(t, `{"jid":"`+e.JID+`","job":{"class":"A"},"millrace":{"offset":5,"first_offset":3,"at":7,"queue":"default","class":"A","attempt":0}}`,
		string(e.Item(3)))
}

// Two publishes of a job are one if jid, queue and bytes are the same, even at different times.
func TestGatedSamePublish(t *testing.T) {
	entry := func(offset int64, key, body string) Entry {
		e, err := EntryOf(&Record{Stream: Gated, Offset: offset, Time: time.Unix(offset, 0), Exchange: ExchangeDirect, Key: key, Body: []byte(body)})
		require.NoError(t, err)
		return e
	}
	first := entry(1, "a", `{"jid":"j","class":"A"}`)
	require.True(t, SamePublish(first, entry(2, "a", `{"jid":"j","class":"A"}`)))
	require.False(t, SamePublish(first, entry(2, "b", `{"jid":"j","class":"A"}`)))
	require.False(t, SamePublish(first, entry(2, "a", `{"jid":"j","class":"B"}`)))
	require.False(t, SamePublish(entry(1, "a", `{"class":"A"}`), entry(2, "a", `{"class":"A"}`)), "jobs without a jid")
}

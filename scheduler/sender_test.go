package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// The user_id of a delayed message stays with it when it is carried over, and when its fire did not
// arrive.
func TestSenderSurvivesCarryOverAndMisroutedFire(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	body := fmt.Sprintf(`{"jid":"message","scheduled_at":%d,"job":{"class":%q,"queue":"q"}}`, sc.now.Add(time.Minute).Unix(), wire.MessageClass)
	sc.broker.append(wire.ScheduledJobs, "app", wire.Message{Body: []byte(body), Headers: map[string]any{wire.HeaderUserID: "app"}})
	sc.rounds(s, 2, nil)
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 12, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	sc.prove(s)
	sc.broker.cut = true
	sc.now = sc.now.Add(2 * time.Minute)
	sc.untilMisrouted(s)
	require.Empty(t, sc.copies())

	var senders []any
	observe := func(m wire.Message) bool {
		if _, fired := wire.DispatchOf(m.Headers); fired {
			senders = append(senders, m.Headers[wire.HeaderUserID])
		}
		return false
	}
	sc.elect(s, never)
	for range 40 {
		sc.rounds(s, 1, observe)
	}
	require.Equal(t, map[string]int{"message": 1}, sc.copies())
	require.Equal(t, []any{"app"}, senders)
}

// It stays with a dead letter too, if the broker has checked that Millrace published the message.
func TestSenderOfDeadLetter(t *testing.T) {
	t.Parallel()
	s, _, v := prepared(t)
	for user, sender := range map[string]any{v.Owner.Name: "app", "app": "app", "other": nil, "": nil} {
		m := s.deadJob(wire.Delivery{UserID: user, Headers: map[string]any{wire.HeaderUserID: "app"}, Body: []byte(`{"class":"C","jid":"a"}`)})
		require.Equal(t, sender, m.Headers[wire.HeaderUserID], user)
	}
}

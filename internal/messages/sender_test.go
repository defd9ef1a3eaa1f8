package messages

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// newTaggedWorld has a sidecar whose broker user has tags, and an application with a user of its
// own.
func newTaggedWorld(t *testing.T, tags string) (w *world, app *brokertest.User) {
	t.Helper()
	w = newWorld(t, func(v *brokertest.Vhost) string {
		return v.AddUser(t, "millrace", brokertest.Permissions{Tags: tags}).AMQPURL()
	})
	_, err := w.Channel(t).QueueDeclare("mine", true, false, false, false, nil)
	require.NoError(t, err)
	return w, w.AddUser(t, "büro", brokertest.Permissions{})
}

// publish publishes as a user. user_id says who it is, and a header whose message it is.
func (w *world) publish(t *testing.T, as *brokertest.User, to string, job any, userID, sender string) {
	t.Helper()
	body, err := json.Marshal(job)
	require.NoError(t, err)
	ch, err := as.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", to, true, false,
		amqp.Publishing{Body: body, UserId: userID, Headers: amqp.Table{wire.HeaderUserID: sender}})
	require.NoError(t, err)
	require.True(t, confirm.Wait())
}

func messageJob(jid, key string) map[string]any {
	return map[string]any{"jid": jid, "class": wire.MessageClass, "queue": wire.MessageQueue, "retry": 5,
		"args": []any{map[string]any{"exchange": "", "routing_key": key, "body": jid}}}
}

func scheduled(jid, key string, at time.Time) map[string]any {
	return map[string]any{"type": "scheduled_job", "jid": jid, "scheduled_at": wire.Seconds(at), "job": messageJob(jid, key)}
}

func (w *world) act(t *testing.T, method, path, body string) {
	t.Helper()
	status, answer, err := w.sidecar.Do(method, path, body)
	require.NoError(t, err)
	require.Less(t, status, 300, "%s %s: %s", method, path, answer)
}

// awaitSet waits until a job is in a set of entries.
func (w *world) awaitSet(t *testing.T, jid, set string) {
	t.Helper()
	brokertest.Eventually(t, func() bool { return w.job(t, jid).Get("entries.0.millrace.set").String() == set }, "%s is among the %s", jid, set)
}

const impersonator = "policymaker,monitoring,impersonator"

// A message keeps the user_id that the broker has checked: also if it is changed, deleted and put
// back, retried, killed, and retried again.
func TestMessageKeepsItsUserID(t *testing.T) {
	w, app := newTaggedWorld(t, impersonator)
	soon, late := time.Now().Add(500*time.Millisecond), time.Now().Add(time.Hour)
	arrives := func(jid, from string) {
		t.Helper()
		d := w.receive(t, "mine")
		require.Equal(t, []string{jid, from}, []string{string(d.Body), d.UserId})
	}
	w.publish(t, app, wire.ScheduledJobs, scheduled("due", "mine", soon), app.Name, app.Name)
	arrives("due", app.Name)

	w.publish(t, app, wire.ScheduledJobs, scheduled("handled", "nowhere", late), app.Name, app.Name)
	w.awaitSet(t, "handled", "scheduled-jobs")
	w.act(t, http.MethodPatch, "/api/scheduled-jobs/handled", `{"at":`+string(mustJSON(t, wire.Seconds(late.Add(time.Hour))))+`}`)
	w.act(t, http.MethodDelete, "/api/scheduled-jobs/handled", "")
	w.act(t, http.MethodPost, "/api/scheduled-jobs/handled/undo", "")
	w.act(t, http.MethodPost, "/api/scheduled-jobs/handled/trigger", "")
	w.awaitSet(t, "handled", "retries") // no queue is called nowhere
	w.act(t, http.MethodPost, "/api/retries/handled/kill", "")
	w.act(t, http.MethodPost, "/api/retries/handled/undo", "")
	w.act(t, http.MethodPost, "/api/retries/handled/kill", "")
	w.awaitSet(t, "handled", "dead-jobs")
	_, err := w.Channel(t).QueueDeclare("nowhere", true, false, false, false, nil)
	require.NoError(t, err)
	w.act(t, http.MethodPost, "/api/dead-jobs/handled/retry", "")
	require.Equal(t, app.Name, w.receive(t, "nowhere").UserId)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// A user cannot send messages in the name of another one.
func TestUserIDCannotBeForged(t *testing.T) {
	w, app := newTaggedWorld(t, impersonator)
	victim := w.AddUser(t, "victim", brokertest.Permissions{})
	soon := time.Now().Add(200 * time.Millisecond)
	anonymous := func(jid string) {
		t.Helper()
		d := w.receive(t, "mine")
		require.Equal(t, []string{jid, ""}, []string{string(d.Body), d.UserId})
	}
	w.publish(t, app, wire.ScheduledJobs, scheduled("header", "mine", soon), app.Name, victim.Name)
	anonymous("header")
	w.publish(t, app, wire.ScheduledJobs, scheduled("unchecked", "mine", soon), "", app.Name)
	anonymous("unchecked")
	w.publish(t, app, wire.QueuePrefix+wire.MessageQueue, messageJob("direct", "mine"), app.Name, victim.Name)
	anonymous("direct")

	// Nor by way of a retry, which the sidecar publishes.
	w.publish(t, app, wire.QueuePrefix+wire.MessageQueue, messageJob("retried", "later"), app.Name, victim.Name)
	w.awaitSet(t, "retried", "retries")
	_, err := w.Channel(t).QueueDeclare("later", true, false, false, false, nil)
	require.NoError(t, err)
	w.act(t, http.MethodPost, "/api/retries/retried/retry", "")
	require.Empty(t, w.receive(t, "later").UserId)
}

// Without the tag the broker refuses the user_id. The message is delivered without it.
func TestUserIDNeedsImpersonator(t *testing.T) {
	w, app := newTaggedWorld(t, "policymaker,monitoring")
	for _, jid := range []string{"first", "second"} {
		w.publish(t, app, wire.ScheduledJobs, scheduled(jid, "mine", time.Now()), app.Name, app.Name)
		d := w.receive(t, "mine")
		require.Equal(t, []string{jid, ""}, []string{string(d.Body), d.UserId})
		require.False(t, d.Redelivered)
	}
}

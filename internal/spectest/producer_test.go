package spectest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// arrives waits for a job in a queue and takes it.
func arrives(t *testing.T, v *brokertest.Vhost, queue string) gjson.Result {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		q, ok := inspect(t, v, queue)
		return ok && q.Messages > 0
	}, "a job in %s", queue)
	d, ok := v.Get(t, queue)
	require.True(t, ok)
	job := gjson.ParseBytes(d.Body)
	require.True(t, job.IsObject(), job.Raw)
	return job
}

func TestProducersOfSectionFour(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		language
		code func(*testing.T, *brokertest.Vhost) string
	}{
		{python, pythonProducer},
		{javascript, func(t *testing.T, v *brokertest.Vhost) string {
			return specification(t, "4.2-producer.js", append(insideAsync, host(v, "'amqp://localhost'"))...)
		}},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			s := serve(t, v)
			p.client(t, v, p.code(t, v)).run(t, "produce")

			job := arrives(t, v, "queue.default")
			require.Equal(t, "SendEmailJob", job.Get("class").String())
			require.JSONEq(t, `["user@example.com","Hello!"]`, job.Get("args").Raw)
			require.Len(t, job.Get("jid").String(), 32)
			require.Equal(t, "25 0", job.Get("retry").Raw+" "+job.Get("retry_count").Raw)

			scheduled := s.entry(t, "scheduled-jobs", "SendReminderJob")
			s.post(t, "/api/scheduled-jobs/%s/trigger", scheduled.Get("jid").String())
			job = arrives(t, v, "queue.default")
			require.JSONEq(t, `[123]`, job.Get("args").Raw)
			require.Equal(t, scheduled.Get("jid").String(), job.Get("jid").String(), "workers find the envelope's jid in the job")
		})
	}
}

func pythonProducer(t *testing.T, v *brokertest.Vhost) string {
	t.Helper()
	return specification(t, "4.2-producer.py", host(v, `"amqp://localhost"`))
}

func TestScheduleOfSectionThree(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := serve(t, v)
	code := specification(t, "3.2-schedule.py", imports("import uuid"), host(v, `'amqp://...'`))
	python.client(t, v, code).run(t, "produce")

	scheduled := s.entry(t, "scheduled-jobs", "SendEmailJob")
	s.post(t, "/api/scheduled-jobs/%s/trigger", scheduled.Get("jid").String())
	job := arrives(t, v, "queue.default")
	require.JSONEq(t, `["user@example.com","Welcome!"]`, job.Get("args").Raw)
	require.Equal(t, scheduled.Get("jid").String(), job.Get("jid").String())
}

func TestProducerOfSectionEight(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	serve(t, v)
	code := func(differences ...difference) *client {
		return ruby.client(t, v, specification(t, "8.1-producer.rb", append(differences, host(v, `'amqp://localhost'`))...))
	}

	start(t, "the producer as written", code().command(t.Context(), "produce")).fails(t)

	// The default exchange routes to the queue with exactly this name. There is none, so the job is
	// lost.
	lost := code(rubyImports, reserved)
	lost.run(t, "produce")
	require.False(t, hasQueue(t, v, "critical"))
	// If there is one, the job is in it, but no worker of queue.critical takes it from there.
	_, err := v.Channel(t).QueueDeclare("critical", true, false, false, false, nil)
	require.NoError(t, err)
	lost.run(t, "produce")
	require.Equal(t, "SendEmailJob", arrives(t, v, "critical").Get("class").String())
	require.False(t, hasQueue(t, v, "queue.critical"))

	code(rubyImports, reserved, exchange).run(t, "produce")
	job := arrives(t, v, "queue.critical")
	require.JSONEq(t, `["user@example.com","Hello"]`, job.Get("args").Raw)
	require.Equal(t, int64(10), job.Get("retry").Int())
	require.Zero(t, v.QueueLength(t, "queue.critical"), "the lost job stays lost")
}

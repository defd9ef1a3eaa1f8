package spectest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// A client of any language and Millrace can declare the queues in any order, without an error 406.
func TestClientsDeclareQueuesOfSectionTwo(t *testing.T) {
	t.Parallel()
	for _, first := range []language{python, ruby, javascript} {
		t.Run(first.name+" declares before Millrace", func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			clients := []*client{python.client(t, v, ""), ruby.client(t, v, ""), javascript.client(t, v, "")}
			require.Contains(t, first.client(t, v, "").run(t, "declare", "queue.before"), "declared")
			s := serve(t, v)
			publish(t, python.client(t, v, ""), "jobs.direct", "during", `{"class":"SendEmailJob","args":[]}`)
			brokertest.Eventually(t, func() bool { return hasQueue(t, v, "queue.during") }, "Millrace makes queue.during")
			for _, c := range clients {
				require.Contains(t, c.run(t, "declare", "queue.before", "queue.during", "queue.after"), "declared")
			}
			require.Empty(t, s.get(t, "/api/overview").Get("scheduler.last_error").String())
		})
	}
}

package main

import (
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// The definitions of a virtual host, exported while a sidecar leads, can be imported into an empty
// one, as docs/backup.md says: the lock and the streams among them. A sidecar leads there.
func TestSidecarLeadsOnImportedDefinitions(t *testing.T) {
	from := brokertest.New(t)
	start(t, beside(from)).leads(t)
	deliver := func(v *brokertest.Vhost) {
		r := millrace(t, "schedule", "Mail", "--queue", "mail", "--in", "1s", "--amqp-url", v.AMQPURL())
		require.Zero(t, r.code, r.err)
		take(t, v, "queue.mail")
	}
	deliver(from)
	var definitions map[string]any
	from.Do(t, http.MethodGet, "/api/definitions/"+from.Name, nil, &definitions)
	exclusive := regexp.MustCompile(`^(jobs\.probe\.|amq\.gen)`)
	bindings, _ := definitions["bindings"].([]any)
	definitions["bindings"] = slices.DeleteFunc(bindings, func(b any) bool {
		destination, _ := b.(map[string]any)["destination"].(string)
		return exclusive.MatchString(destination)
	})

	to := brokertest.New(t)
	to.Do(t, http.MethodPost, "/api/definitions/"+to.Name, definitions, nil)
	var queues []struct{ Name string }
	to.Do(t, http.MethodGet, "/api/queues/"+to.Name, nil, &queues)
	names := make([]string, 0, len(queues))
	for _, q := range queues {
		names = append(names, q.Name)
	}
	require.Subset(t, names, []string{"job_journal", "scheduled_jobs", "queue.mail"})
	require.Equal(t, !to.Features(t).ExclusiveLock, slices.Contains(names, "jobs.leader"), "no exclusive queue is imported")
	start(t, beside(to)).leads(t)
	deliver(to)
}

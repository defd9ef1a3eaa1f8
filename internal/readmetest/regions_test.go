package readmetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// Jobs cross from one region to the other as the page says, each of them although the connection
// breaks for some time.
func TestRegions(t *testing.T) {
	block := readmeBlocks(t, "docs/regions.md")
	us := serve(t)
	eu := serveOn(t, brokertest.OwnErlang(t))
	require.NoError(t, eu.vhost.Node(t).SetPlugins(t.Context(), "rabbitmq_shovel"))
	for _, s := range []*sidecar{us, eu} {
		out, err := s.command(t, "sh", "-c", "PATH=bin:$PATH; "+block["both.sh"]).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	const queue = "queue.eu.mails"
	require.Contains(t, block["us.sh"], `'^$' '^$' '^queue\.eu\.mails$'`)
	source := us.vhost.AddUser(t, "shovel", brokertest.Permissions{Configure: "^$", Write: "^$", Read: `^queue\.eu\.mails$`})
	require.Contains(t, block["eu.sh"], `'^$' '^jobs\.direct$' '^$'`)
	dest := eu.vhost.AddUser(t, "shovel", brokertest.Permissions{Configure: "^$", Write: `^jobs\.direct$`, Read: "^$"})

	link := brokertest.NewProxy(t, source.AMQPURL())
	text := replaced(t, block["shovel.json"], "amqps://shovel:PASSWORD@us.example/jobs", link.URL(), "amqp://shovel:PASSWORD@localhost/jobs", dest.AMQPURL(),
		`"user_id": "shovel"`, fmt.Sprintf(`"user_id": %q`, dest.Name), `"reconnect-delay": 5`, `"reconnect-delay": 1`)
	parameter := map[string]any{"vhost": eu.vhost.Name, "component": "shovel", "name": "eu-mails", "value": json.RawMessage(text)}
	eu.vhost.Do(t, http.MethodPut, "/api/parameters/shovel/"+eu.vhost.Name+"/eu-mails", parameter, nil)

	wanted := map[string]bool{}
	enqueue := func(options ...string) {
		for range 20 {
			args := append([]string{"enqueue", "SendEmail", `["ann@example.com"]`, "--queue", "eu.mails"}, options...)
			if len(options) > 0 {
				args[0] = "schedule"
			}
			out, err := us.command(t, program(t), args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			wanted[strings.TrimSpace(string(out))] = true
		}
	}
	enqueue()
	enqueue("--in", "3s")
	arrived := func(n int) func() bool { return func() bool { return eu.vhost.QueueLength(t, queue) >= n } }
	brokertest.Eventually(t, arrived(40), "the jobs arrive, also those that were delivered later")
	brokertest.Eventually(t, func() bool {
		_, all := countIn(t, us.vhost.ManagementURL()+"/api/queues/"+us.vhost.Name+"/"+queue)
		return all == 0
	}, "all are acknowledged")
	link.Cut(t)
	enqueue()
	brokertest.Eventually(t, func() bool { return us.vhost.QueueLength(t, queue) == 20 }, "the jobs wait")
	require.Equal(t, 40, eu.vhost.QueueLength(t, queue), "nothing crosses")
	link.Heal(t)
	brokertest.EventuallyWithin(t, time.Minute, arrived(60), "the jobs that waited arrive")

	found := map[string]bool{}
	for {
		d, ok := eu.vhost.Get(t, queue)
		if !ok {
			break
		}
		require.NotContains(t, found, d.MessageId, "it crossed twice, and nothing was under way when the link broke")
		found[d.MessageId] = true
	}
	require.Equal(t, wanted, found)
	require.Zero(t, us.vhost.QueueLength(t, queue))
}

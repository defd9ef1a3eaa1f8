package devup

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/devup/demo"
)

// welcome says where everything is, and what to try. The web UI comes first, alone on its line.
func welcome(live *output.Live, addr, amqpURL, managementURL, dir string) string {
	management, err := url.Parse(managementURL)
	if err != nil {
		return err.Error() + "\n"
	}
	password, _ := management.User.Password()
	user := management.User.Username()
	management.User = nil
	var b strings.Builder
	row := func(name, value string) { fmt.Fprintf(&b, "  %-10s %s\n", name, value) }
	fmt.Fprintf(&b, "\n%s Open the web UI, user %s, password %s:\n\n", live.Good("Millrace is up."), user, password)
	fmt.Fprintf(&b, "  %s\n\n", live.Address("http://"+addr+"/"))
	row("REST API", live.Address("http://"+addr+"/api/overview"))
	row("AMQP", live.Address(amqpURL))
	row("Broker", live.Address(management.String()))
	row("Data", dir+"  ("+os.Args[0]+" up --fresh deletes them)")
	b.WriteString("\nA demo worker runs the jobs of the queues demo.critical, demo.default,\ndemo.low and demo.exports. In another terminal, try these commands. JID is the\nid that enqueue prints.\n\n")
	for _, command := range suggestions(os.Args[0], amqpURL, addr) {
		fmt.Fprintf(&b, "  %s\n", command)
	}
	b.WriteString("\nCtrl-C stops everything.\n\n")
	return b.String()
}

// suggestions are commands to try. On other ports than the usual ones, the first
// ones set the addresses for the others.
func suggestions(program, amqpURL, httpAddr string) (commands []string) {
	if !strings.HasSuffix(amqpURL, ":5672/") {
		commands = append(commands, "export MILLRACE_AMQP_URL="+amqpURL)
	}
	if httpAddr != "127.0.0.1:15680" {
		commands = append(commands, "export MILLRACE_HTTP_ADDR="+httpAddr)
	}
	return append(commands,
		program+` enqueue SendEmail '["ann@example.com"]' --queue demo.default`,
		program+" job JID",
		program+` schedule SendEmail '["ann@example.com"]' --queue demo.low --in 1m`,
		program+" scheduled",
		program+" dead",
		program+" top",
		program+" limits parts demo.one-import  # a limit: one of a shop at once",
		program+" governed  # a governed queue: in demo.exports shops take turns",
		program+" unique  # unique jobs: one Reindex and one WarmCache of a shop",
		program+" periodic  # periodic jobs: CleanUp comes each 30 seconds",
	)
}

// countsLine says what the demo has done, and how many jobs each set holds.
func countsLine(ctx context.Context, c demo.Counts, api *apiclient.Client) string {
	line := fmt.Sprintf("enqueued %d   processed %d   failed %d", c.Enqueued, c.Processed, c.Failed)
	o, err := api.Overview(ctx)
	if err != nil {
		return line + "   (the sidecar does not answer)"
	}
	return fmt.Sprintf("%s   scheduled %d   retries %d   dead %d", line, o.Sets[apiclient.Scheduled].Total, o.Sets[apiclient.Retries].Total, o.Sets[apiclient.Dead].Total)
}

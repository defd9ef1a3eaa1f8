package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

const governedQueues = "governed queues"

// governed looks for governed queues that get jobs past limits, or that may refuse what is
// delivered to them, and for queues that are not governed and get no jobs of clients.
func (e *examination) governed(ctx context.Context) error {
	governed, err := e.cfg.API.GovernedQueues(ctx)
	if err != nil || e.mgmt == nil {
		return nil //nolint:nilerr // an older sidecar has none
	}
	directed, err := e.mgmt.Directed(ctx)
	if err != nil {
		return err
	}
	all, err := e.mgmt.Queues(ctx)
	if err != nil {
		return err
	}
	fine, known := true, map[string]bool{}
	report := func(severity severity, text, remedy string) {
		fine = false
		e.reportOn(governedQueues, severity, text, remedy)
	}
	for _, q := range governed {
		known[q.Name] = true
		queue := wire.QueuePrefix + q.Name
		if slices.Contains(directed[q.Name], queue) && q.State != wire.QueueSwitching {
			report(failure, fmt.Sprintf("%s is bound to %s: jobs come to it without limits", queue, wire.ExchangeDirect),
				"the leader unbinds it; do not bind it in workers, and take their permission to read "+wire.ExchangeDirect)
		}
		if slices.Contains(directed[q.Name], wire.Gated) && (q.State == wire.QueueGoverned || q.State == wire.QueueBypassed) {
			report(note, fmt.Sprintf("jobs for %s run twice if a worker binds the queue, because the policies of %s are not in force", q.Name, wire.ExchangeDirect),
				"set a policy of yours that applies to "+wire.ExchangeDirect+" to a name pattern that leaves it out, or do not bind the queue in workers")
		}
		if i := slices.IndexFunc(all, func(b broker.QueueInfo) bool { return b.Name == queue }); i >= 0 && (all[i].MaxLength > 0 || all[i].MaxLengthBytes > 0) {
			report(note, queue+" has a length limit: what it refuses is delivered again, and what it drops keeps its slot for a while", "remove the length limit, and use max_waiting")
		}
	}
	for name, queues := range directed {
		if !known[name] && (slices.Contains(queues, wire.Gated) || slices.Contains(queues, wire.Full)) {
			report(failure, fmt.Sprintf("jobs for %s do not go to the queue, although it is not governed", name),
				fmt.Sprintf("govern it for a moment: millrace governed set %s, then millrace governed forget %s", name, name))
		}
	}
	if fine && len(governed) > 0 {
		e.reportOn(governedQueues, ok, wire.Counted(int64(len(governed)), "queue")+": all get their jobs through Millrace", "")
	}
	return nil
}

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

const governedQueues = "governed queues"

// governed looks at governed queues, and for what was left of some.
func (e *examination) governed(ctx context.Context) error {
	governed, err := e.cfg.API.GovernedQueues(ctx)
	if err != nil {
		return nil //nolint:nilerr // an older sidecar has none
	}
	before, states := len(e.findings), map[string]string{}
	for i := range governed {
		states[governed[i].Name] = governed[i].State
	}
	if len(governed) > 0 {
		e.alternate(ctx)
	}
	if e.mgmt == nil {
		return nil
	}
	if err := e.bindings(ctx, states); err != nil {
		return err
	}
	if len(governed) > 0 && len(e.findings) == before {
		e.reportOn(governedQueues, ok, wire.Counted(int64(len(governed)), "queue")+": all get their jobs through Millrace", "")
	}
	return nil
}

// alternate tries whether jobs are kept that come while a queue is bound to nothing.
func (e *examination) alternate(ctx context.Context) {
	var has bool
	pub, err := e.conn.Publisher(ctx)
	if err == nil {
		has, err = pub.HasAlternate(ctx)
		_ = pub.Close()
	}
	switch {
	case err != nil:
		e.reportOn(governedQueues, note, fmt.Sprintf("whether %s has an alternate exchange is not known: %s", wire.ExchangeDirect, err), "")
	case !has:
		e.reportOn(governedQueues, failure, wire.ExchangeDirect+" has no alternate exchange: jobs for queues that do not exist are lost, and no queue is switched",
			"set the policy:\n"+strings.Join(slices.DeleteFunc(broker.PolicyCommands(e.conn.Features(), e.conn.VHost()), func(command string) bool {
				return !strings.Contains(command, "alternate-exchange")
			}), "\n"))
	}
}

// bindings looks for governed queues that get jobs past limits, or that may refuse what is
// delivered to them, and for queues that are not governed and get no jobs of clients. states are
// those of governed queues, by name.
func (e *examination) bindings(ctx context.Context, states map[string]string) error {
	directed, err := e.mgmt.Directed(ctx)
	if err != nil {
		return err
	}
	all, err := e.allQueues(ctx)
	if err != nil {
		return err
	}
	report := func(severity severity, text, remedy string) { e.reportOn(governedQueues, severity, text, remedy) }
	for _, name := range slices.Sorted(maps.Keys(states)) {
		queue := wire.QueuePrefix + name
		if slices.Contains(directed[name], queue) && states[name] != wire.QueueSwitching {
			report(failure, fmt.Sprintf("%s is bound to %s: jobs come to it without limits", queue, wire.ExchangeDirect),
				"the leader unbinds it; do not bind it in workers, and take their permission to read "+wire.ExchangeDirect)
		}
		if slices.Contains(directed[name], wire.Gated) && (states[name] == wire.QueueGoverned || states[name] == wire.QueueBypassed) {
			report(note, fmt.Sprintf("jobs for %s run twice if a worker binds the queue, because the policies of %s are not in force", name, wire.ExchangeDirect),
				"set a policy of yours that applies to "+wire.ExchangeDirect+" to a name pattern that leaves it out, or do not bind the queue in workers")
		}
		if i := slices.IndexFunc(all, func(b broker.QueueInfo) bool { return b.Name == queue }); i >= 0 && (all[i].MaxLength > 0 || all[i].MaxLengthBytes > 0) {
			report(note, queue+" has a length limit: what it refuses is delivered again, and what it drops keeps its slot for a while", "remove the length limit, and use max_waiting")
		}
	}
	for name, queues := range directed {
		if _, known := states[name]; !known && (slices.Contains(queues, wire.Gated) || slices.Contains(queues, wire.Full)) {
			report(failure, fmt.Sprintf("jobs for %s do not go to the queue, although it is not governed", name),
				fmt.Sprintf("govern it for a moment: millrace governed set %s, then millrace governed forget %s", name, name))
		}
	}
	return nil
}

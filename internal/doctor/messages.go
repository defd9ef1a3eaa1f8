package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxTried = 200 // exchanges: each costs a request
	maxNamed = 10  // of them
)

// messages looks for delayed messages that nothing delivers, and for exchanges to which the sidecar
// may not deliver.
func (e *examination) messages(ctx context.Context) error {
	queues, err := e.allQueues(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(queues, func(q broker.QueueInfo) bool { return q.Name == wire.QueuePrefix+wire.MessageQueue })
	if i >= 0 && queues[i].Ready > 0 && queues[i].Consumers == 0 {
		remedy := "start the sidecars with --deliver-to and the names of the exchanges: --deliver-to 'orders|shop\\..*' (or MILLRACE_DELIVER_TO)"
		if e.cfg.DeliverTo != nil {
			remedy = "give each sidecar of the virtual host the setting --deliver-to, and start it again"
		}
		e.report(note, fmt.Sprintf("%s due, and no sidecar delivers messages", areDue(queues[i].Ready)), remedy)
	}
	if e.cfg.DeliverTo == nil {
		return nil
	}
	if err := e.deliverTo(ctx); err != nil {
		return err
	}
	e.userIDs(ctx)
	return nil
}

// userIDs reports whether the sidecar may publish messages with the user_id of their publishers.
func (e *examination) userIDs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, connect.PermissionsTimeout)
	defer cancel()
	switch allowed, err := e.conn.Impersonates(ctx); {
	case err != nil:
		e.report(note, "whether messages keep their user_id is not known: "+err.Error(), "")
	case allowed:
		e.report(ok, fmt.Sprintf("user %s has the tag impersonator: messages keep their user_id", e.conn.User()), "")
	default:
		features := e.conn.Features()
		e.report(note, fmt.Sprintf("user %s does not have the tag impersonator: messages are delivered without their user_id", e.conn.User()),
			"if consumers need it: "+features.Ctl+" "+connect.TagsCommand(e.conn.User(), "impersonator"))
	}
}

func areDue(n int64) string {
	if n == 1 {
		return "1 delayed message is"
	}
	return wire.Counted(n, "delayed message") + " are"
}

// deliverTo tries to write to the exchanges that match. It leaves out those that the broker makes
// in each virtual host, which '.*' matches too, and those of Millrace.
func (e *examination) deliverTo(ctx context.Context) error {
	all, err := e.mgmt.Exchanges(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(all, wire.ExchangeDirect) { // LavinMQ refuses nothing without it
		e.report(note, "the exchanges that --deliver-to matches are not tried, as there is no sidecar yet", "start a sidecar first")
		return nil
	}
	matching := slices.DeleteFunc(all, func(name string) bool {
		return ofBroker(name) || strings.HasPrefix(name, "jobs.") || !e.cfg.DeliverTo.MatchString(name)
	})
	slices.Sort(matching)
	if len(matching) == 0 {
		if !e.cfg.DeliverTo.MatchString("") {
			e.report(note, "--deliver-to matches no exchange that exists: messages for others are retried, and then dead",
				"declare the exchange, or correct --deliver-to: it must match the whole name")
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connect.PermissionsTimeout)
	defer cancel()
	lacks, err := e.conn.Topology().LacksWrite(ctx, matching[:min(len(matching), maxTried)])
	switch {
	case err != nil:
		e.report(note, err.Error(), "")
	case len(lacks) > 0:
		role := connect.Sidecar
		role.Write += "|" + e.cfg.DeliverTo.String()
		e.report(failure, fmt.Sprintf("user %s may not write to %s: messages for %s cannot be delivered",
			e.conn.User(), wire.Counted(int64(len(lacks)), "exchange")+" that --deliver-to matches", named(lacks)),
			role.Grant(e.conn.Features(), e.conn.VHost(), e.conn.User()))
	default:
		e.report(ok, fmt.Sprintf("user %s may write to the exchanges that --deliver-to matches: %s", e.conn.User(), named(matching)), "")
	}
	return nil
}

// ofBroker reports whether the broker makes an exchange in each virtual host.
func ofBroker(name string) bool {
	return name == "" || strings.HasPrefix(name, "amq.") || name == "mqtt.default"
}

// named lists names, if they are many only some.
func named(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

package doctor

import (
	"context"
	"fmt"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/wire"
)

// followers is what is known of a LavinMQ cluster. LavinMQ lists the followers that are in sync,
// and no others. So how many there should be is known from the hosts in the settings.
type followers struct {
	hosts  int      // that the management URL names
	silent []string // those of them that do not answer
	synced []broker.Follower
}

// followers looks at how many copies of everything LavinMQ has.
func (e *examination) followers(ctx context.Context) error {
	u, err := hosts.Parse(e.cfg.Broker.Management())
	if err != nil {
		return err
	}
	f := followers{hosts: len(u.Hosts), silent: e.mgmt.SilentHosts(ctx)}
	if f.synced, err = e.mgmt.Followers(ctx); err != nil {
		return err
	}
	e.findings = append(e.findings, f.findings()...)
	return nil
}

// findings returns nothing for a single node.
func (f *followers) findings() (all []finding) {
	const subject = "cluster"
	for _, host := range f.silent {
		all = append(all, finding{failure, "node " + host, "its management API does not answer: there is one copy less of everything",
			"start LavinMQ on it; if it runs, look into its log, and for a firewall"})
	}
	inSync := wire.Counted(int64(len(f.synced)), "follower") + " in sync"
	switch missing := f.hosts - 1 - len(f.synced); {
	case f.hosts == 1 && len(f.synced) > 0:
		return append(all, finding{note, subject, inSync + ", and the settings name only one host: sidecars do not find another node when it is lost",
			"name all nodes in --amqp-url (amqp://user:password@a,b,c/), and in --management-url if it is set"})
	case f.hosts == 1:
		return all
	case len(f.synced) == 0:
		return append(all, finding{failure, subject, fmt.Sprintf("the settings name %d hosts, and no follower is in sync: what the leader confirms has no other copy", f.hosts), clusteringRemedy})
	case missing > 0:
		return append(all, finding{note, subject, fmt.Sprintf("the settings name %d hosts, and there is only %s", f.hosts, inSync), clusteringRemedy})
	}
	return append(all, finding{ok, subject, inSync, ""})
}

// clusteringRemedy says what makes a node a follower that is in sync.
const clusteringRemedy = "wait if a node has just started: it is no follower before it has copied all data\n" +
	"else start each node with clustering: in lavinmq.ini, section [clustering], enabled = true, with the same etcd_endpoints and etcd_prefix on each, and an advertised_uri that the others reach\n" +
	"the log of a node that does not follow says why"

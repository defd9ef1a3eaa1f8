package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/wire"
)

// Only one policy applies to a queue or exchange: the one with the highest priority. Millrace's
// priorities are below any that an operator would choose. The policy for quorum queues wins over
// the policy for all queues.
const (
	policyPriority       = -10
	quorumPolicyPriority = -9
	// An operator's policy for all exchanges would cost jobs of governed queues, so one is above
	// it.
	alternatePriority = 1000
)

// maxDeliveries is how often a quorum queue delivers a job before the job becomes dead. Workers
// give up earlier.
const maxDeliveries = 50

type policy struct {
	Name       string         `json:"name,omitempty"`
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Priority   int            `json:"priority"`
	Definition map[string]any `json:"definition"`
}

const (
	mega = 1_000_000
	giga = 1_000_000_000
	day  = 24 * 60 * 60 * 1000 // ms
)

// policies returns the policies that Millrace sets on a broker.
func policies(f Features, consumerTimeout bool) []policy {
	queues := map[string]any{"dead-letter-exchange": wire.ExchangeDead}
	if consumerTimeout {
		queues["consumer-timeout"] = day
	}
	list := []policy{
		{Name: "millrace-queues", Pattern: `^queue\.`, ApplyTo: "queues", Definition: queues},
		alternatePolicies()[0],
		streamPolicy(wire.ScheduledJobs, "30D", 0, 64*mega),
		streamPolicy(wire.Retries, "30D", 0, 64*mega),
		streamPolicy(wire.DeadJobs, "180D", 10*giga, 64*mega),
		streamPolicy(wire.Gated, "30D", 0, 64*mega),
		streamPolicy(wire.Journal, "7D", 20*giga, 64*mega),
		streamPolicy(wire.Heartbeats, "5m", 0, 16*mega),
		streamPolicy(wire.JobMetrics, "90D", 0, 64*mega),
		streamPolicy(wire.JobBegins, "7D", 1*giga, 16*mega),
		streamPolicy(wire.JobEnds, "7D", 2*giga, 16*mega),
	}
	for i := range list {
		list[i].Priority = policyPriority
	}
	if f.QuorumPriorities {
		list = append(list, quorumPolicy(queues))
	}
	return list
}

// quorumPolicy returns the policy of job queues that are quorum queues. It has the settings of all
// job queues, and a strategy that keeps a dead letter that no queue takes, and sends it again. The
// strategy works only in a queue that refuses messages when it is full.
func quorumPolicy(all map[string]any) policy {
	definition := map[string]any{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish", "delivery-limit": maxDeliveries}
	maps.Copy(definition, all)
	return policy{Name: "millrace-quorum", Pattern: `^queue\.`, ApplyTo: "quorum_queues", Priority: quorumPolicyPriority, Definition: definition}
}

// alternatePolicies returns the policies that give jobs.direct its alternate exchange.
func alternatePolicies() []policy {
	usual := policy{Name: "millrace-direct", Pattern: `^jobs\.direct$`, ApplyTo: "exchanges", Priority: policyPriority,
		Definition: map[string]any{"alternate-exchange": wire.Unrouted}}
	second := usual
	second.Name, second.Priority = "millrace-governed", alternatePriority
	return []policy{usual, second}
}

func streamPolicy(name, maxAge string, maxBytes, segment int64) policy {
	definition := map[string]any{"max-age": maxAge, "stream-max-segment-size-bytes": segment}
	if maxBytes > 0 {
		definition["max-length-bytes"] = maxBytes
	}
	return policy{Name: "millrace-stream-" + name, Pattern: "^" + regexp.QuoteMeta(name) + "$", ApplyTo: "queues", Definition: definition}
}

// Policies sets Millrace's policies, and reports where another policy wins over them. It writes
// only policies that are missing or differ.
func (m *Management) Policies(ctx context.Context) ([]Finding, error) {
	present, err := m.policies(ctx)
	if err != nil {
		return nil, err
	}
	wanted := policies(m.features, m.features.ConsumerTimeoutPolicy && !m.noConsumerTimeout.Load())
	for _, p := range wanted {
		if have, ok := present[p.Name]; ok && samePolicy(have, p) {
			continue
		}
		if err := m.putPolicy(ctx, p); err != nil {
			return nil, err
		}
	}
	return m.overruled(ctx, wanted, present)
}

func (m *Management) policies(ctx context.Context) (map[string]policy, error) {
	var list []policy
	if err := m.get(ctx, "/api/policies/"+segment(m.vhost), &list); err != nil {
		return nil, err
	}
	byName := make(map[string]policy, len(list))
	for _, p := range list {
		byName[p.Name] = p
	}
	return byName, nil
}

// putPolicy sets a policy. It leaves out consumer-timeout where the broker refuses the whole policy
// because of it.
func (m *Management) putPolicy(ctx context.Context, p policy) error {
	path := "/api/policies/" + segment(m.vhost) + "/" + segment(p.Name)
	err := m.put(ctx, path, p)
	if _, has := p.Definition["consumer-timeout"]; !has || statusOf(err) != http.StatusBadRequest {
		return err
	}
	m.noConsumerTimeout.Store(true)
	p.Definition = maps.Clone(p.Definition)
	delete(p.Definition, "consumer-timeout")
	return m.put(ctx, path, p)
}

func samePolicy(a, b policy) bool {
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	return errors.Join(err1, err2) == nil && bytes.Equal(one, two)
}

// overruled returns a finding for each foreign policy that applies in place of one of ours.
func (m *Management) overruled(ctx context.Context, wanted []policy, present map[string]policy) ([]Finding, error) {
	applied, err := m.applied(ctx)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, ours := range wanted {
		pattern := regexp.MustCompile(ours.Pattern)
		losses := map[string][]string{} // the winning policy → the names that it applies to
		for _, thing := range applied[ours.ApplyTo] {
			if thing.policy == "" || thing.policy == ours.Name || !pattern.MatchString(thing.name) {
				continue
			}
			if winner := present[thing.policy]; !covers(winner.Definition, ours.Definition) {
				losses[thing.policy] = append(losses[thing.policy], thing.name)
			}
		}
		for _, winner := range slices.Sorted(maps.Keys(losses)) {
			findings = append(findings, m.overruling(ours, present[winner], losses[winner]))
		}
	}
	return findings, nil
}

type application struct{ name, policy string }

// applied returns which policy applies to each queue and exchange, by kind.
func (m *Management) applied(ctx context.Context) (map[string][]application, error) {
	applied := map[string][]application{}
	for _, kind := range []string{"queues", "exchanges"} {
		var said []struct {
			Name   string  `json:"name"`
			Type   string  `json:"type"`
			Policy *string `json:"policy"`
		}
		if err := m.get(ctx, "/api/"+kind+"/"+segment(m.vhost)+"?columns=name,type,policy", &said); err != nil {
			return nil, err
		}
		for _, thing := range said {
			one := application{thing.Name, deref(thing.Policy)}
			applied[kind] = append(applied[kind], one)
			if thing.Type == string(QueueQuorum) {
				applied["quorum_queues"] = append(applied["quorum_queues"], one)
			}
		}
	}
	return applied, nil
}

// covers reports whether a policy sets everything that ours sets, to any value. Two of ours are
// optional: the size of segments and consumer-timeout.
func covers(theirs, ours map[string]any) bool {
	for key := range ours {
		_, has := theirs[key]
		if !has && key != "stream-max-segment-size-bytes" && key != "consumer-timeout" {
			return false
		}
	}
	return true
}

// cost returns what is lost where our policy does not apply.
func cost(ours policy) string {
	switch ours.Name {
	case "millrace-queues":
		return "jobs that their workers reject are lost"
	case "millrace-quorum":
		return "jobs that their workers reject may be lost when a node dies, and a job that is delivered 20 times without an end is dropped"
	case "millrace-direct":
		return "jobs that clients publish for a queue that does not exist are lost"
	default:
		return "it forgets records at another time than Millrace counts on"
	}
}

// overruling returns a finding that proposes a policy with the settings of both, above the one that
// wins, for these names alone.
func (m *Management) overruling(ours, winner policy, names []string) Finding {
	slices.Sort(names)
	merged := policy{Name: ours.Name + "-merged", Pattern: namesPattern(names), ApplyTo: ours.ApplyTo, Priority: winner.Priority + 1, Definition: maps.Clone(ours.Definition)}
	maps.Copy(merged.Definition, winner.Definition)
	return Finding{
		Subject: "policy " + winner.Name,
		Problem: fmt.Sprintf("wins over %s for %s: %s", ours.Name, some(names), cost(ours)),
		Remedy:  "set a policy that says what both say: " + command(m.features, m.vhost, merged),
	}
}

func namesPattern(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

func some(names []string) string {
	const shown = 5
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// PolicyCommands returns the shell commands that set Millrace's policies, for brokers without a
// management API.
func PolicyCommands(f Features, vhost string) []string {
	var commands []string
	for _, p := range policies(f, f.ConsumerTimeoutPolicy) {
		commands = append(commands, command(f, vhost, p))
	}
	return commands
}

func command(f Features, vhost string, p policy) string {
	definition, err := json.Marshal(p.Definition)
	if err != nil {
		definition = []byte(err.Error())
	}
	return fmt.Sprintf("%s set_policy --vhost %s --priority=%d --apply-to %s %s %s %s",
		f.Ctl, quote(vhost), p.Priority, p.ApplyTo, quote(p.Name), quote(p.Pattern), quote(string(definition)))
}

// quote quotes a word for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

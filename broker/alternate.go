package broker

import (
	"context"
	"net/http"
	"slices"

	"github.com/millrace-jobs/millrace/wire"
)

// Nothing is bound for a governed queue, so its jobs depend on the alternate exchange of
// jobs.direct. A policy of the operator that applies to jobs.direct would take it away. So while
// queues are governed, a second policy sets it, with a higher priority.

// Alternate is the alternate exchange of jobs.direct, by way of the management API.
type Alternate struct{ mgmt *Management }

// AlternateOf returns the alternate exchange of jobs.direct.
func AlternateOf(m *Management) Alternate { return Alternate{m} }

// Keep sets both policies of the alternate exchange, and reports whether it can be relied on: both
// were set already, and it leads to jobs.gated. If another policy applies, Keep changes nothing.
func (a Alternate) Keep(ctx context.Context) (safe bool, err error) {
	m, ours := a.mgmt, alternatePolicies()
	var exchange struct {
		Policy *string `json:"policy"`
	}
	if err := m.get(ctx, "/api/exchanges/"+segment(m.vhost)+"/"+segment(wire.ExchangeDirect), &exchange); err != nil {
		return false, missingIsNone(err)
	}
	applied := deref(exchange.Policy)
	if applied != "" && !slices.ContainsFunc(ours, func(p policy) bool { return p.Name == applied }) {
		return false, nil
	}
	present, err := m.policies(ctx)
	if err != nil {
		return false, err
	}
	safe = applied == ours[1].Name
	for _, p := range ours {
		if have, ok := present[p.Name]; ok && samePolicy(have, p) {
			continue
		}
		safe = false
		if err := m.putPolicy(ctx, p); err != nil {
			return false, err
		}
	}
	if !safe {
		return false, nil
	}
	keys, err := m.BoundKeys(ctx, wire.Unrouted, wire.Gated)
	return len(keys) > 0, err
}

// Drop removes the policy that is only there for governed queues.
func (a Alternate) Drop(ctx context.Context) error {
	m := a.mgmt
	_, err := m.do(ctx, http.MethodDelete, "/api/policies/"+segment(m.vhost)+"/"+segment(alternatePolicies()[1].Name), nil, nil)
	return missingIsNone(err)
}

// BoundKeys returns the routing keys with which an exchange leads to a queue.
func (m *Management) BoundKeys(ctx context.Context, exchange, queue string) ([]string, error) {
	var said []boundQueue
	if err := m.get(ctx, "/api/bindings/"+segment(m.vhost)+"/e/"+segment(exchange)+"/q/"+segment(queue), &said); err != nil {
		return nil, missingIsNone(err)
	}
	keys := make([]string, len(said))
	for i, b := range said {
		keys[i] = b.Key
	}
	return keys, nil
}

func missingIsNone(err error) error {
	if statusOf(err) == http.StatusNotFound {
		return nil
	}
	return err
}

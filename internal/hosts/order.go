// Package hosts finds one host of a broker among several. It parses the URLs that name them, and
// keeps the order in which to try them.
package hosts

import (
	"cmp"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
)

// Order is the order in which hosts are tried. It is random at first. Then the last good host comes
// first, and the last lost host comes last. All connections of a process to the same hosts share
// one Order, so that each benefits from what the others found. It is safe for concurrent use. The
// zero value has tried nothing yet.
type Order struct {
	// Near is the order of the same broker's hosts for another protocol, or nil. The host that is
	// current there comes first here too, unless it was lost here.
	Near *Order

	mu      sync.Mutex
	rank    map[string]int64 // of a host or an address; the lowest comes first
	changes int64
	current Target

	lookup lookup // the lookup of net.DefaultResolver, unless a test sets another
}

// Target is one address of a host.
type Target struct {
	Host    string // host:port as it was given; TLS checks this name
	Address string // host:port to connect to, with an IP address of Host
}

// lastUnranked is the highest rank of a host that was neither good nor lost.
const lastUnranked = 1 << 32

// Good puts the target first.
func (o *Order) Good(t Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	o.set(t, -o.changes)
	o.current = t
}

// Lost puts the target last. On a nil Order it does nothing.
func (o *Order) Lost(t Target) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	o.set(t, lastUnranked+o.changes)
}

func (o *Order) set(t Target, rank int64) {
	if o.rank == nil {
		o.rank = map[string]int64{}
	}
	o.rank[t.Host], o.rank[t.Address] = rank, rank
}

// Current returns the last good target.
func (o *Order) Current() Target {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.current
}

// Sorted returns hosts, or the addresses of one host, in the order in which to try them.
func (o *Order) Sorted(all []string) []string {
	var near Target
	if o.Near != nil {
		near = o.Near.Current()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.rank == nil {
		o.rank = map[string]int64{}
	}
	for _, name := range all {
		if _, known := o.rank[name]; !known {
			o.rank[name] = rand.Int64N(lastUnranked) //nolint:gosec // not for secrets
		}
	}
	rank := func(name string) int64 {
		if r := o.rank[name]; r > lastUnranked || !near.isOn(name) {
			return r
		}
		return math.MinInt64
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
}

// isOn reports whether a host:port is on the target's machine, as far as the names show.
func (t Target) isOn(hostPort string) bool {
	name := nameOf(hostPort)
	return name != "" && (name == nameOf(t.Host) || name == nameOf(t.Address))
}

// nameOf returns a host:port without the port.
func nameOf(hostPort string) string {
	name, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return ""
	}
	return name
}

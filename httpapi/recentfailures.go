package httpapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	recentFor = 10 * time.Minute // failures are counted for so long
	mostHosts = 5                // that a group names
)

// recentFailures are the attempts that failed lately.
type recentFailures struct {
	over  time.Duration // of how long they are
	byJID map[string][]metrics.Run
}

// recentFailures reads the failures of the last minutes from what workers reported. Where they reported much, the time is shorter.
func (s *Server) recentFailures() (*recentFailures, error) {
	now := s.cfg.Now()
	recent := &recentFailures{over: recentFor, byJID: map[string][]metrics.Run{}}
	if s.cfg.Metrics == nil {
		return recent, nil
	}
	most := int(s.maxSearched / 2)
	found, err := s.cfg.Metrics.Runs(metrics.RunQuery{From: now.Add(-recentFor), Limit: most, Most: most})
	if err != nil {
		return nil, err
	}
	oldest := now
	for _, r := range found.Runs {
		if r.At.Before(oldest) {
			oldest = r.At
		}
		if r.JID != "" && (r.Status == wire.MetricFailed || r.Status == wire.MetricDead) {
			recent.byJID[r.JID] = append(recent.byJID[r.JID], r)
		}
	}
	if found.Next != nil || found.Older {
		recent.over = now.Sub(oldest)
	}
	return recent, nil
}

// hostCount is how many attempts failed on a host.
type hostCount struct {
	Host  string `json:"host"`
	Count int64  `json:"count"`
}

// hostCounts counts by host; what no worker process ran is not in it.
type hostCounts map[string]int64

// top are the hosts where most failed.
func (h hostCounts) top() []hostCount {
	all := make([]hostCount, 0, len(h))
	for _, host := range slices.SortedFunc(maps.Keys(h), func(a, b string) int { return cmp.Or(cmp.Compare(h[b], h[a]), cmp.Compare(a, b)) }) {
		all = append(all, hostCount{host, h[host]})
	}
	return all[:min(len(all), mostHosts)]
}

// countRecent counts the recent attempts of a job that failed as the others of the group did.
func (g *errorGroup) countRecent(recent []metrics.Run) {
	for _, r := range recent {
		if r.Error != "" && r.Error != g.ErrorClass {
			continue
		}
		g.Recent++
		if host, _, _ := strings.Cut(r.Worker, ":"); host != "" {
			g.hosts[host]++
		}
	}
}

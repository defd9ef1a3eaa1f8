package httpapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxGroups = 500
	maxHosts  = 5                // that a group names
	recentFor = 10 * time.Minute // failures are counted for so long
)

// failuresAPI groups retries and dead jobs by their errors.
type failuresAPI struct {
	entries      *tracker.Reader
	metrics      *metrics.Reader
	fingerprints *fingerprints
	answers      *answerCache
	limits       *limits
	hide         *redactor
	now          func() time.Time
}

// errorGroup is a group while it is counted.
type errorGroup struct {
	answer.ErrorGroup
	hosts hostCounts
}

func (a *failuresAPI) list(in *problem.Request) (any, error) {
	in.Query("set", "queue", "class", "from", "to")
	f := readFilter(in, a.now())
	sets := []string{wire.Retries, wire.DeadJobs}
	switch in.Text("set") {
	case "":
	case "retries":
		sets = sets[:1]
	case "dead-jobs":
		sets = sets[1:]
	default:
		in.BadRequest("parameter set is %q: it must be retries or dead-jobs", problem.Shorten(in.Text("set")))
	}
	found, err := a.answers.share(in, func(ctx context.Context) (any, error) { return a.group(ctx, sets, f) })
	if err != nil {
		return nil, err
	}
	groups := found.(answer.ErrorGroups)
	if a.hide.of(in).hides("error_message") {
		groups.Items = slices.Clone(groups.Items) // other requests share them
		for i := range groups.Items {
			groups.Items[i].Example = ""
		}
	}
	return groups, nil
}

func (a *failuresAPI) group(ctx context.Context, sets []string, f filter) (any, error) {
	g := &grouping{api: a, found: map[string]*errorGroup{}, until: time.Now().Add(a.limits.tally), answer: answer.ErrorGroups{Complete: true}}
	if len(sets) == 1 {
		asOf, err := a.entries.Position(sets[0]) // first, as for a list
		if err != nil {
			return nil, err
		}
		g.answer.AsOf = &asOf
	}
	var err error
	if g.recent, err = a.recent(); err != nil {
		return nil, err
	}
	for _, stream := range sets {
		if err := g.scan(ctx, &query{stream: stream, filter: f}); err != nil {
			return nil, err
		}
	}
	return g.sorted(), nil
}

type recentFailures struct {
	over  time.Duration // of the last so long
	byJID map[string][]metrics.Run
}

// recent reads the failures of the last minutes; of a shorter time, if workers reported much.
func (a *failuresAPI) recent() (*recentFailures, error) {
	now := a.now()
	recent := &recentFailures{over: recentFor, byJID: map[string][]metrics.Run{}}
	if a.metrics == nil {
		return recent, nil
	}
	most := int(a.limits.searched / 2)
	found, err := a.metrics.Runs(metrics.RunQuery{From: now.Add(-recentFor), Limit: most, Most: most})
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

// grouping is the answer while it is made.
type grouping struct {
	api    *failuresAPI
	found  map[string]*errorGroup
	recent *recentFailures
	until  time.Time // after it no more entries are read
	answer answer.ErrorGroups
}

// scan looks at the entries of a stream, as many as one call may look at.
func (g *grouping) scan(ctx context.Context, q *query) error {
	most := g.api.limits.searched
	var fault error
	err := g.api.entries.List(q.stream, q.start(), func(r tracker.Row) bool {
		switch {
		case q.past(r.At):
			return false
		case most == 0:
			g.answer.Complete = false
			return false
		}
		if most--; most&1023 == 0 && ctx.Err() != nil {
			fault = ctx.Err()
			return false
		}
		if most&63 == 0 && time.Now().After(g.until) && !g.api.fingerprints.has(q.stream, &r) {
			g.answer.Complete = false
			return false
		}
		g.answer.Searched++
		if q.filter.MatchRow(&r) && q.filter.Within(r.At) {
			fault = g.add(q.stream, &r)
		}
		return fault == nil
	})
	return cmp.Or(fault, err)
}

func (g *grouping) add(stream string, r *tracker.Row) error {
	what, read, err := g.api.fingerprints.of(g.api.entries.Lookup, stream, r)
	if err != nil || what == nil {
		if err == nil && !read {
			g.answer.Unread++
		}
		return err
	}
	one := g.found[what.Fingerprint]
	if one == nil {
		one = &errorGroup{answer.ErrorGroup{Failure: what.Failure, Example: what.example, First: wire.Seconds(r.At), JID: r.JID}, hostCounts{}}
		g.found[what.Fingerprint] = one
	}
	one.add(stream, r.At)
	one.addRecent(g.recent.byJID[r.JID])
	return nil
}

func (g *grouping) sorted() answer.ErrorGroups {
	g.answer.Items, g.answer.Over = []answer.ErrorGroup{}, g.recent.over.Seconds()
	for _, one := range g.found {
		one.Hosts, one.HostCount = one.hosts.top(), len(one.hosts)
		g.answer.Items = append(g.answer.Items, one.ErrorGroup)
	}
	slices.SortFunc(g.answer.Items, func(a, b answer.ErrorGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	if len(g.answer.Items) > maxGroups {
		g.answer.Items, g.answer.Complete = g.answer.Items[:maxGroups], false
	}
	return g.answer
}

func (g *errorGroup) add(stream string, at time.Time) {
	g.Count++
	if stream == wire.Retries {
		g.Retries++
	} else {
		g.Dead++
	}
	g.First, g.Last = min(g.First, wire.Seconds(at)), max(g.Last, wire.Seconds(at))
}

// addRecent counts the recent attempts of a job that failed with the error of the group.
func (g *errorGroup) addRecent(recent []metrics.Run) {
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

// hostCounts counts by host. Attempts without a worker process are not in it.
type hostCounts map[string]int64

// top returns the hosts where most attempts failed.
func (h hostCounts) top() []answer.HostCount {
	all := make([]answer.HostCount, 0, len(h))
	for _, host := range slices.SortedFunc(maps.Keys(h), func(a, b string) int { return cmp.Or(cmp.Compare(h[b], h[a]), cmp.Compare(a, b)) }) {
		all = append(all, answer.HostCount{Host: host, Count: h[host]})
	}
	return all[:min(len(all), maxHosts)]
}

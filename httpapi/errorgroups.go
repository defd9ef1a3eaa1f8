package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// errorGroup is the errors with one fingerprint.
type errorGroup struct {
	Fingerprint string  `json:"fingerprint"` // a value of the filter error
	Class       string  `json:"class"`
	ErrorClass  string  `json:"error_class"`
	Message     string  `json:"message"`           // without what changes from one time to the next
	Example     string  `json:"example,omitempty"` // the first line of one job's message
	Count       int64   `json:"count"`
	Retries     int64   `json:"retries"`
	Dead        int64   `json:"dead"`
	First       float64 `json:"first"` // the earliest time of its entries: when they died, or are due again
	Last        float64 `json:"last"`
	JID         string  `json:"jid"` // one of them

	Recent    int64       `json:"recent"` // attempts that failed in the last minutes
	Hosts     []hostCount `json:"hosts"`  // where they ran, most first
	HostCount int         `json:"host_count"`
	hosts     hostCounts
}

// errorGroups is all of them, the largest first.
type errorGroups struct {
	Items    []*errorGroup `json:"items"`
	Searched int64         `json:"searched"`
	Unread   int64         `json:"unsearched"`      // large entries, whose record stays in the stream
	Complete bool          `json:"complete"`        // false: there are more entries than one call looks at
	AsOf     *int64        `json:"as_of,omitempty"` // of one set: the offset of its stream up to which the view had been read
	Over     float64       `json:"recent_seconds"`  // the time that recent is of
}

const maxGroups = 500

// listErrors groups what failed.
func (s *Server) listErrors(c echo.Context) error {
	p, err := problem.ParseParams(c.Request(), "set", "queue", "class", "from", "to")
	if err != nil {
		return err
	}
	f, err := filterOf(p, s.cfg.Now())
	if err != nil {
		return err
	}
	sets := []string{wire.Retries, wire.DeadJobs}
	switch p["set"] {
	case "":
	case "retries":
		sets = sets[:1]
	case "dead-jobs":
		sets = sets[1:]
	default:
		return problem.BadRequest("parameter set is %q: it must be retries or dead-jobs", problem.Shorten(p["set"]))
	}
	groups, err := s.shared.get(c.Request().Context(), sharedKey(c.Request()), 0, func(ctx context.Context) (any, error) {
		g := &grouping{found: map[string]*errorGroup{}, known: s.fingerprints, until: time.Now().Add(s.maxTally), answer: errorGroups{Complete: true}}
		if len(sets) == 1 {
			asOf, err := s.cfg.Entries.Position(sets[0]) // first, as for a list
			if err != nil {
				return nil, err
			}
			g.answer.AsOf = &asOf
		}
		if g.recent, err = s.recentFailures(); err != nil {
			return nil, err
		}
		for _, stream := range sets {
			if err := s.group(ctx, g, stream, f); err != nil {
				return nil, err
			}
		}
		return g.sorted(), nil
	})
	if err != nil {
		return err
	}
	answer := groups.(errorGroups)
	if s.hide.of(c).hides("error_message") {
		answer.Items = withoutExamples(answer.Items)
	}
	return c.JSON(http.StatusOK, answer)
}

// withoutExamples copies the groups: others share them.
func withoutExamples(groups []*errorGroup) []*errorGroup {
	all := make([]*errorGroup, len(groups))
	for i, one := range groups {
		without := *one
		without.Example = ""
		all[i] = &without
	}
	return all
}

type grouping struct {
	found  map[string]*errorGroup
	known  *fingerprints
	recent *recentFailures
	until  time.Time // by then no more entries are read that are not known yet
	answer errorGroups
}

// group looks at the entries of a stream, as many as one call may look at.
func (s *Server) group(ctx context.Context, g *grouping, stream string, f filter) error {
	q := &query{stream: stream, filter: f}
	most := s.maxSearched
	var fault error
	err := s.cfg.Entries.List(stream, q.start(), func(r tracker.Row) bool {
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
		if most&63 == 0 && time.Now().After(g.until) && !g.known.has(stream, &r) {
			g.answer.Complete = false
			return false
		}
		g.answer.Searched++
		if f.row(&r) && f.within(r.At) {
			fault = g.add(s.cfg.Entries, stream, &r)
		}
		return fault == nil
	})
	return cmp.Or(fault, err)
}

func (g *grouping) add(entries *tracker.Entries, stream string, r *tracker.Row) error {
	what, read, err := g.known.of(entries, stream, r)
	if err != nil || what == nil {
		if err == nil && !read {
			g.answer.Unread++
		}
		return err
	}
	one := g.found[what.fingerprint]
	if one == nil {
		one = &errorGroup{Fingerprint: what.fingerprint, Class: what.class, ErrorClass: what.errorClass, Message: what.message,
			Example: what.example, First: wire.Seconds(r.At), JID: r.JID, hosts: hostCounts{}}
		g.found[what.fingerprint] = one
	}
	one.note(stream, r.At)
	one.countRecent(g.recent.byJID[r.JID])
	return nil
}

func (g *errorGroup) note(stream string, at time.Time) {
	g.Count++
	if stream == wire.Retries {
		g.Retries++
	} else {
		g.Dead++
	}
	g.First, g.Last = min(g.First, wire.Seconds(at)), max(g.Last, wire.Seconds(at))
}

func (g *grouping) sorted() errorGroups {
	g.answer.Items, g.answer.Over = []*errorGroup{}, g.recent.over.Seconds()
	for _, one := range g.found {
		one.Hosts, one.HostCount = one.hosts.top(), len(one.hosts)
		g.answer.Items = append(g.answer.Items, one)
	}
	slices.SortFunc(g.answer.Items, func(a, b *errorGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	if len(g.answer.Items) > maxGroups {
		g.answer.Items, g.answer.Complete = g.answer.Items[:maxGroups], false
	}
	return g.answer
}

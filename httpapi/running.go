package httpapi

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// statusRunning selects jobs that run now, in place of attempts that have ended.
const statusRunning = "running"

// list lists recent attempts, or the jobs that run now.
func (a *jobsAPI) list(in *problem.Request) (any, error) {
	in.Query("queue", "class", "jid", "error", "worker", "status", "failed", "from", "to", "limit", "next")
	if in.Text("status") == statusRunning {
		return a.listRunning(in)
	}
	return a.runs.list(in)
}

// listRunning lists the jobs that worker processes report to run, the longest-running first.
func (a *jobsAPI) listRunning(in *problem.Request) (any, error) {
	in.Without("status=running", "error", "failed", "from", "to")
	limit, behind := int(in.Number("limit", defaultSize, 1, maxSize)), readRunningPlace(in)
	if in.Err() != nil {
		return nil, in.Err()
	}
	usual, err := a.workers.usual(in.Request().Context())
	if err != nil {
		return nil, err
	}
	found, workers := answer.History[answer.RunningOn]{Items: []answer.RunningOn{}}, a.workers.list()
	for i := range workers {
		p := &workers[i]
		found.Searched += len(p.Work)
		for j := range p.Work {
			r := newRunningOn(p, newRunning(p, &p.Work[j], usual))
			if isAsked(in, &r) && (behind == nil || placeOf(&r).compare(*behind) > 0) {
				found.Items = append(found.Items, r)
			}
		}
	}
	slices.SortFunc(found.Items, func(a, b answer.RunningOn) int { return placeOf(&a).compare(placeOf(&b)) })
	if len(found.Items) > limit {
		found.Items = found.Items[:limit]
		next := placeOf(&found.Items[limit-1]).cursor()
		found.Next = &next
	}
	return found, nil
}

// isAsked reports whether a job is asked for.
func isAsked(in *problem.Request, r *answer.RunningOn) bool {
	is := map[string]string{"queue": r.Queue, "class": r.Class, "jid": r.JID, "worker": r.Identity}
	for name, value := range is {
		if asked := in.Text(name); asked != "" && asked != value {
			return false
		}
	}
	return true
}

// runningPlace is the place of a running job in their list. A job that ends moves no other.
type runningPlace struct {
	begun         int64 // microseconds since 1970
	identity, jid string
}

// unknownBegin is after all times: jobs whose worker does not report when they began are last.
const unknownBegin = 999_999_999_999_999_999

func placeOf(r *answer.RunningOn) runningPlace {
	place := runningPlace{unknownBegin, r.Identity, r.JID}
	if r.StartedAt != nil {
		place.begun = max(0, wire.FromSeconds(*r.StartedAt).UnixMicro())
	}
	return place
}

func (p runningPlace) compare(o runningPlace) int {
	return cmp.Or(cmp.Compare(p.begun, o.begun), cmp.Compare(p.identity, o.identity), cmp.Compare(p.jid, o.jid))
}

func (p runningPlace) cursor() string {
	return fmt.Sprintf("%d,%s,%s", p.begun, url.QueryEscape(p.identity), url.QueryEscape(p.jid))
}

// readRunningPlace reads next: the place of the last job that was seen.
func readRunningPlace(in *problem.Request) *runningPlace {
	text := in.Text("next")
	if text == "" {
		return nil
	}
	begun, rest, _ := strings.Cut(text, ",")
	identity, jid, found := strings.Cut(rest, ",")
	at, err := strconv.ParseUint(begun, 10, 62)
	identity, err1 := url.QueryUnescape(identity)
	jid, err2 := url.QueryUnescape(jid)
	if !found || cmp.Or(err, err1, err2) != nil {
		badCursor(in)
	}
	return &runningPlace{int64(at), identity, jid}
}

package httpapi

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// journalQuery says which acts are asked for.
type journalQuery struct {
	tracker.ActQuery
	queue, operation string
	collapsed        bool     // the acts of one operation are one item
	shown            []string // operations that earlier pages have, and which did not begin there
}

// sifts reports whether more acts are read than are shown.
func (q *journalQuery) sifts() bool { return q.collapsed || q.queue != "" || q.operation != "" }

// journalBatch is how many acts are read at a time where not all that are read are shown.
const journalBatch = 2000

// journalNext reads a cursor: the record that the list continues below, and operations that it must not show again.
func journalNext(p problem.Params) (below int64, shown []string, err error) {
	text, given := p["next"]
	if !given {
		return 0, nil, nil
	}
	words := strings.Split(text, ",")
	below, fault := strconv.ParseInt(words[0], 10, 64)
	for _, word := range words[1:] {
		id, err := url.QueryUnescape(word)
		if err != nil || id == "" {
			below = 0
		}
		shown = append(shown, id)
	}
	if fault != nil || below < 1 || below > 1<<62 || words[0][0] == '+' {
		return 0, nil, problem.BadRequest("parameter next is %q: it must be what an answer gave as next", problem.Shorten(text))
	}
	return below, shown, nil
}

func journalCursor(below int64, shown []string) *string {
	text := strconv.FormatInt(below, 10)
	for _, id := range shown {
		text += "," + url.QueryEscape(id)
	}
	return &text
}

// searchJournal finds what is asked for, in as many steps as it takes.
func (s *Server) searchJournal(q journalQuery) (found past[act], err error) {
	j := newJournalPage(s, &q)
	acts := q.ActQuery
	acts.Limit++     // one more tells whether there is another page
	if q.collapsed { // also what does not match tells where an operation begins
		acts.Actor, acts.Op = "", ""
	}
	if q.sifts() {
		acts.Limit = journalBatch
	}
	ended := false
	for left := int(s.maxSearched); !ended && !j.done() && (left == int(s.maxSearched) || left >= journalBatch); {
		acts.Most = left
		some, err := s.cfg.Entries.Acts(acts)
		if err != nil {
			return found, err
		}
		for i := range some.Acts {
			j.take(&some.Acts[i])
		}
		found.Searched, left = found.Searched+some.Searched, left-some.Searched
		acts.Below, ended, found.Older = some.Next, some.Next == 0, some.Older
	}
	found.Items = j.items
	switch {
	case j.full() && (j.more || !ended):
		found.Next = journalCursor(j.below, j.open)
	case !ended:
		found.Next = journalCursor(acts.Below, slices.Sorted(maps.Keys(j.shown)))
	}
	found.Older = found.Older && found.Next == nil
	return found, nil
}

// journalPage is a page of acts while it is filled.
type journalPage struct {
	server *Server
	query  *journalQuery
	items  []act
	shown  map[string]int // operations that have an item, by where it stands here; -1: on an earlier page. Without those that have begun

	uncounted map[string]bool // operations of which only the acts tell how many jobs they were about

	more  bool     // acts that match stand behind this page
	below int64    // where the page ends
	open  []string // what was shown there
}

func newJournalPage(s *Server, q *journalQuery) *journalPage {
	j := &journalPage{server: s, query: q, items: []act{}, shown: map[string]int{}, uncounted: map[string]bool{}}
	for _, id := range q.shown {
		j.shown[id] = -1
	}
	return j
}

func (j *journalPage) full() bool { return len(j.items) == j.query.Limit }

// done reports whether the page is full, and all is known of what is on it.
func (j *journalPage) done() bool { return j.more && len(j.uncounted) == 0 }

// take takes in the next older act.
func (j *journalPage) take(a *tracker.Act) {
	if !j.query.collapsed || a.Operation == "" {
		if j.query.match(a) {
			j.add(newAct(a))
		}
		return
	}
	at, shown := j.shown[a.Operation]
	if !shown && j.query.match(a) {
		if at = len(j.items); j.full() {
			j.more = true
		} else {
			shown = true
			j.shown[a.Operation] = at
			j.addOperation(a)
		}
	}
	if shown && at >= 0 && j.uncounted[a.Operation] && a.JID != "" {
		j.items[at].Count++
	}
	if a.Op == wire.TypeOperation && a.State == wire.OperationRunning { // nothing older is part of it
		delete(j.shown, a.Operation)
		delete(j.uncounted, a.Operation)
	}
	j.end(a.Record)
}

func (j *journalPage) add(item act) {
	if j.full() {
		j.more = true
		return
	}
	j.items = append(j.items, item)
	j.end(item.Record)
}

// addOperation adds the newest act of an operation in place of all of them.
func (j *journalPage) addOperation(a *tracker.Act) {
	item := newAct(a)
	item.JID, item.Offset = "", nil
	if op, known := j.server.cfg.Entries.Operation(a.Operation); known {
		item.Count = op.Done
	} else {
		j.uncounted[a.Operation] = true
	}
	j.items = append(j.items, item)
}

// end notes where the page ends, which is where it became full.
func (j *journalPage) end(record int64) {
	if j.full() && j.below == 0 {
		j.below, j.open = record, slices.Sorted(maps.Keys(j.shown))
	}
}

// match reports whether an act is asked for, by what the view does not filter by.
func (q *journalQuery) match(a *tracker.Act) bool {
	return (q.queue == "" || a.Queue == q.queue || a.Op == wire.NotedMoved && a.To == q.queue) && (q.operation == "" || a.Operation == q.operation) &&
		(q.Actor == "" || a.Actor == q.Actor) && (q.Op == "" || a.Op == q.Op)
}

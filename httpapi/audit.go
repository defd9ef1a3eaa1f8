package httpapi

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/wire"
)

// auditAPI lists what was done, by whom and why, as the journal has it.
type auditAPI struct {
	log        audit.Reader
	operations *tracker.BulkOperations
	answers    *answerCache
	limits     *limits
	now        func() time.Time
}

func newJournalEntry(a *audit.Entry) answer.JournalEntry {
	shown := answer.JournalEntry{Record: a.Record, At: a.At, Op: a.Op, JID: a.JID, Queue: a.Queue, To: a.To, Identity: a.Identity, Actor: a.Actor, Reason: a.Reason,
		Operation: a.Operation, Periodic: a.Periodic, Limit: a.Limit, Action: a.Action, State: a.State, Count: a.Count}
	if shown.Set = setOf(a.Stream); shown.Set == "" {
		shown.Stream = a.Stream
	}
	if a.JID != "" && a.Op != wire.NotedCancelled || a.Op == wire.TypeDismissed {
		shown.Offset = &a.Offset
	}
	return shown
}

// auditQuery says which entries are asked for.
type auditQuery struct {
	audit.Query
	queue, operation string
	collapsed        bool     // the entries of one operation are one item
	shown            []string // operations that earlier pages have, and that did not begin there
	format           string   // csv or ndjson: all of it
}

// sifts reports whether more entries are read than are shown.
func (q *auditQuery) sifts() bool { return q.collapsed || q.queue != "" || q.operation != "" }

// match reports whether an entry is asked for, where the view does not filter.
func (q *auditQuery) match(a *audit.Entry) bool {
	return (q.queue == "" || a.Queue == q.queue || a.Op == wire.NotedMoved && a.To == q.queue) && (q.operation == "" || a.Operation == q.operation) &&
		(q.Actor == "" || a.Actor == q.Actor) && (q.Op == "" || a.Op == q.Op)
}

func readAuditQuery(in *problem.Request, now time.Time) auditQuery {
	in.Query("from", "to", "actor", "jid", "op", "queue", "operation", "collapse", "limit", "next", "format")
	q := auditQuery{Query: audit.Query{Actor: in.Text("actor"), JID: in.Text("jid"), Op: in.Text("op")}, queue: in.Text("queue"), operation: in.Text("operation")}
	switch in.Text("collapse") {
	case "":
	case "operations":
		q.collapsed = true
		in.Without("collapse, which leaves single jobs out", "jid", "operation")
	default:
		in.BadRequest("parameter collapse is %q: it must be operations", problem.Shorten(in.Text("collapse")))
	}
	from, to := in.Period(now)
	q.From, q.To = secondsOrZero(from), secondsOrZero(to)
	q.Limit = int(in.Number("limit", defaultSize, 1, maxSize))
	q.format = readFormat(in, "limit", "next")
	if text := in.Text("next"); text != "" {
		var valid bool
		if q.Below, q.shown, valid = parseAuditCursor(text); !valid {
			badCursor(in)
		}
	}
	return q
}

// secondsOrZero returns a time as seconds since 1970; 0 for no time.
func secondsOrZero(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return wire.Seconds(t)
}

// parseAuditCursor reads where a list continues, and operations that it does not show again.
func parseAuditCursor(text string) (below int64, shown []string, valid bool) {
	words := strings.Split(text, ",")
	below, fault := strconv.ParseInt(words[0], 10, 64)
	for _, word := range words[1:] {
		id, err := url.QueryUnescape(word)
		if err != nil || id == "" {
			below = 0
		}
		shown = append(shown, id)
	}
	return below, shown, fault == nil && below >= 1 && below <= 1<<62 && words[0][0] != '+'
}

func auditCursor(below int64, shown []string) *string {
	text := strconv.FormatInt(below, 10)
	for _, id := range shown {
		text += "," + url.QueryEscape(id)
	}
	return &text
}

const auditBatch = 2000

// find returns what is asked for, in as many steps as it takes.
func (a *auditAPI) find(q auditQuery) (found answer.History[answer.JournalEntry], err error) {
	page := newAuditPage(a.operations, &q)
	asked := q.Query
	asked.Limit++    // one more shows whether there is another page
	if q.collapsed { // entries that do not match show where an operation begins
		asked.Actor, asked.Op = "", ""
	}
	if q.sifts() {
		asked.Limit = auditBatch
	}
	most := int(a.limits.searched)
	ended := false
	for left := most; !ended && !page.done() && (left == most || left >= auditBatch); {
		asked.Most = left
		some, err := a.log.Search(asked)
		if err != nil {
			return found, err
		}
		for i := range some.Entries {
			page.take(&some.Entries[i])
		}
		found.Searched, left = found.Searched+some.Searched, left-some.Searched
		asked.Below, ended, found.Older = some.Next, some.Next == 0, some.Older
	}
	found.Items = page.items
	switch {
	case page.full() && (page.more || !ended):
		found.Next = auditCursor(page.below, page.open)
	case !ended:
		found.Next = auditCursor(asked.Below, slices.Sorted(maps.Keys(page.shown)))
	}
	found.Older = found.Older && found.Next == nil
	return found, nil
}

// auditPage is a page while it is filled.
type auditPage struct {
	operations *tracker.BulkOperations
	query      *auditQuery
	items      []answer.JournalEntry

	shown     map[string]int  // operations, by the index of their item; -1: on an earlier page
	uncounted map[string]bool // operations whose jobs must be counted entry by entry

	more  bool     // more entries match
	below int64    // where the page ends
	open  []string // shown, as of there
}

func newAuditPage(operations *tracker.BulkOperations, q *auditQuery) *auditPage {
	p := &auditPage{operations: operations, query: q, items: []answer.JournalEntry{}, shown: map[string]int{}, uncounted: map[string]bool{}}
	for _, id := range q.shown {
		p.shown[id] = -1
	}
	return p
}

func (p *auditPage) full() bool { return len(p.items) == p.query.Limit }

// done reports whether the page is full, and all of it is counted.
func (p *auditPage) done() bool { return p.more && len(p.uncounted) == 0 }

func (p *auditPage) take(a *audit.Entry) {
	if !p.query.collapsed || a.Operation == "" {
		if p.query.match(a) {
			p.add(newJournalEntry(a))
		}
		return
	}
	at, shown := p.shown[a.Operation]
	if !shown && p.query.match(a) {
		if at = len(p.items); p.full() {
			p.more = true
		} else {
			shown = true
			p.shown[a.Operation] = at
			p.addOperation(a)
		}
	}
	if shown && at >= 0 && p.uncounted[a.Operation] && a.JID != "" {
		p.items[at].Count++
	}
	if a.Op == wire.TypeOperation && a.State == wire.OperationRunning { // the oldest of it
		delete(p.shown, a.Operation)
		delete(p.uncounted, a.Operation)
	}
	p.end(a.Record)
}

func (p *auditPage) add(item answer.JournalEntry) {
	if p.full() {
		p.more = true
		return
	}
	p.items = append(p.items, item)
	p.end(item.Record)
}

// addOperation adds the newest entry of an operation in place of all of them.
func (p *auditPage) addOperation(a *audit.Entry) {
	item := newJournalEntry(a)
	item.JID, item.Offset = "", nil
	if op, known := p.operations.Operation(a.Operation); known {
		item.Count = op.Done
	} else {
		p.uncounted[a.Operation] = true
	}
	p.items = append(p.items, item)
}

// end notes where the page ends: where it became full.
func (p *auditPage) end(record int64) {
	if p.full() && p.below == 0 {
		p.below, p.open = record, slices.Sorted(maps.Keys(p.shown))
	}
}

package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// limitsAPI shows and changes limits, and shows what they count.
type limitsAPI struct {
	*definer
	entries *tracker.Reader
	workers *workers
	queues  *queues.Watch
	now     func() time.Time
}

// What is shown at most.
const (
	mostSlots = 1000
	mostParts = 100
)

// list lists all limits, by name.
func (a *limitsAPI) list(in *problem.Request) (any, error) {
	in.Query()
	counts, err := a.entries.Occupancy(a.now())
	if err != nil {
		return nil, err
	}
	all := []answer.Limit{}
	for _, d := range a.entries.Limits.Limits() {
		shown, _ := answerLimit(d, counts)
		all = append(all, shown)
	}
	return all, nil
}

// show shows one limit, with the parts of the jobs that it counts apart from each other.
func (a *limitsAPI) show(in *problem.Request) (any, error) {
	name := in.PathParam("name")
	in.Query()
	d := a.entries.Limits.Limit(name)
	if d == nil {
		return nil, problem.New(http.StatusNotFound, "there is no limit %q", problem.Shorten(name))
	}
	counts, err := a.entries.Occupancy(a.now())
	if err != nil {
		return nil, err
	}
	return withParts(answerLimit(d, counts)), nil
}

// withParts adds the parts of a limit to the answer about it.
func withParts(shown answer.Limit, parts []occupancy.Part) answer.Limit {
	if len(parts) > mostParts {
		shown.PartsLeftOff = len(parts) - mostParts
		parts = parts[:mostParts]
	}
	for i := range parts {
		p := &parts[i]
		shown.Parts = append(shown.Parts, answer.LimitPart{Group: p.Group, Concurrency: p.Concurrency, Used: p.Used.Slots, Waiting: p.Waiting, Opens: p.Opens})
	}
	return shown
}

// answerLimit returns the answer about a limit, and the parts that it counts.
func answerLimit(d *wire.DefinedLimit, counts *occupancy.Counts) (answer.Limit, []occupancy.Part) {
	shown := answer.Limit{Name: d.Name, State: "active", Definition: json.RawMessage("{}"), Layers: answer.LayersOf(d.Layers), WaitingMore: counts.More}
	if merged, err := d.Merged(); err == nil {
		shown.Definition = merged
	}
	def, err := d.Definition()
	if def.Paused {
		shown.State = "paused"
	}
	if err != nil {
		shown.State, shown.Problem = "incomplete", err.Error()
		return shown, nil
	}
	l := counts.Of(d.Name, def)
	shown.Used, shown.Slots, shown.Full, shown.Waiting, shown.Blocked = l.Used, l.Slots, l.Full, l.Waiting, l.Blocked
	for i := range l.Parts {
		if p := &l.Parts[i]; p.Waiting > 0 && p.Opens > 0 && (shown.Opens == 0 || p.Opens < shown.Opens) {
			shown.Opens = p.Opens
		}
	}
	return shown, l.Parts
}

// set sets the operator's layer of a limit. With dry_run it answers what the limit would count.
func (a *limitsAPI) set(in *problem.Request) error {
	in.Query("dry_run")
	dry := dryRun(in)
	raw, err := layer(in)
	if err != nil {
		return err
	}
	all := wire.Definitions{Limits: []json.RawMessage{raw}}
	if dry {
		return a.preview(in, all)
	}
	if _, err := a.command(in, operators(all)); err != nil {
		return err
	}
	return in.NoContent(http.StatusNoContent)
}

// preview answers what a limit would count with another layer of the operator. No leader is asked.
func (a *limitsAPI) preview(in *problem.Request, all wire.Definitions) error {
	if err := checkCommand(in, sign(in, operators(all))); err != nil {
		return err
	}
	named, err := all.NamedLimits()
	if err != nil {
		return err
	}
	would := &wire.DefinedLimit{Name: named[0].Name}
	if d := a.entries.Limits.Limit(would.Name); d != nil {
		would.Layers = d.Layers
	}
	would.Layers = withOperator(would.Layers, named[0].Value, a.now())
	counts, err := a.entries.Occupancy(a.now())
	if err != nil {
		return err
	}
	return in.JSON(http.StatusOK, withParts(answerLimit(would, counts)))
}

func limitNamed(c *wire.Command, name string) { c.Limit = name }

// slots lists the slots that are held, the oldest fires first.
func (a *limitsAPI) slots(in *problem.Request) (any, error) {
	in.Query("limit", "queue", "class", "key")
	limit, queue, class, key := in.Text("limit"), in.Text("queue"), in.Text("class"), in.Text("key")
	covers := func(wire.Group) bool { return true }
	if limit != "" {
		d := a.entries.Limits.Limit(limit)
		if d == nil {
			return nil, problem.New(http.StatusNotFound, "there is no limit %q", problem.Shorten(limit))
		}
		def, err := d.Definition()
		if err != nil {
			return []answer.Slot{}, nil //nolint:nilerr // a limit that is not complete counts nothing
		}
		covers = def.Covers
	}
	all := []answer.Slot{}
	err := a.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		if covers(h.Group) && (queue == "" || h.Queue == queue) && (class == "" || h.Class == class) && (key == "" || h.Key == key) {
			all = append(all, answer.NewSlot(h))
		}
		return true
	})
	slices.SortFunc(all, func(a, b answer.Slot) int { return a.Compare(&b) })
	return all[:min(len(all), mostSlots)], err
}

type freeRequest struct {
	Slot   string `json:"slot"`
	Reason string `json:"reason"`
}

// free frees a slot by hand.
func (a *limitsAPI) free(in *problem.Request) error {
	in.Query()
	var body freeRequest
	in.Body(&body)
	cmd := wire.Command{Command: wire.CommandFree, Slot: body.Slot, Reason: body.Reason}
	if err := checkCommand(in, cmd); err != nil {
		return err
	}
	if _, p := a.leader.send(in, sign(in, cmd)); p != nil {
		return p
	}
	return nil
}

// why says why a gated job waits.
func (a *limitsAPI) why(in *problem.Request) (any, error) {
	jid := in.PathParam("jid")
	in.Query()
	s, err := a.gated(jid)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, problem.New(http.StatusNotFound, "no job with this jid waits for limits")
	}
	out := answer.WhyWaits{Group: s.Group(), DueAt: wire.Seconds(s.At), Limits: []answer.WaitsFor{}, Undecided: s.Undecided}
	if out.Ahead, err = a.entries.AheadInGroup(s, mostSlots); err != nil {
		return nil, err
	}
	rates, err := a.entries.Limits.Rates()
	if err != nil {
		return nil, err
	}
	var all []*waitsFor
	rated := false
	for _, d := range a.entries.Limits.Limits() {
		if def, fault := d.Definition(); fault == nil && def.Covers(s.Group()) {
			w := newWaitsFor(d.Name, def, s.Group())
			all, rated = append(all, w), rated || w.bound.Rate != nil
		}
	}
	var bounded bool
	if out.Governed, bounded = a.governed(s.Queue); !bounded && (rated || out.Governed != nil) {
		out.Unserved = a.isUnserved(in.Request().Context(), s.Queue)
	}
	err = a.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		for _, w := range all {
			w.count(h)
		}
		if out.Governed != nil && h.Queue == s.Queue {
			out.Governed.Out++
		}
		return true
	})
	for _, w := range all {
		out.Limits = append(out.Limits, w.answer(rates, a.now()))
	}
	return out, err
}

// isUnserved reports whether a queue has messages enough, and no one consumes it. What the leader
// finds differs while jobs are fetched from the queue.
func (a *limitsAPI) isUnserved(ctx context.Context, queue string) bool {
	if a.queues == nil {
		return false
	}
	snap, err := a.queues.Look(ctx)
	return err == nil && slices.ContainsFunc(snap.Queues, func(q queues.Queue) bool {
		return q.Name == queue && q.Consumers == 0 && q.Ready >= occupancy.UnservedAhead
	})
}

// governed returns what a governed queue lets its jobs do, nil if the queue is not governed. bounded
// reports whether its definition or its workers say how many jobs may be out.
func (a *limitsAPI) governed(queue string) (shown *answer.WaitsForQueue, bounded bool) {
	q := a.entries.Governed.GovernedQueue(queue)
	if q == nil || !q.Governs() {
		return nil, false
	}
	serving := processes.Serving(a.workers.list())[queue]
	shown, bounded = &answer.WaitsForQueue{State: q.State}, serving.Processes > 0
	if def, err := q.Definition(); err == nil {
		shown.Paused, shown.Ahead = def.Paused, cmp.Or(def.Ahead, occupancy.GovernedAhead(serving.Slots, bounded))
		bounded = bounded || def.Ahead > 0
	}
	return shown, bounded
}

// gated returns the gated entry with a jid that is due first, nil if there is none.
func (a *limitsAPI) gated(jid string) (first *tracker.Stored, err error) {
	for _, stream := range []string{wire.Gated, wire.Retries, wire.ScheduledJobs} {
		found, err := a.entries.Find(stream, jid)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if s.Gated && (first == nil || s.At.Before(first.At)) {
				first = s
			}
		}
	}
	return first, nil
}

// waitsFor is what one limit lets a group do, and who holds its slots.
type waitsFor struct {
	def   wire.Limit
	bound wire.Bound
	shown answer.WaitsFor
}

func newWaitsFor(name string, def wire.Limit, g wire.Group) *waitsFor {
	bound, part := def.Of(g)
	return &waitsFor{def, bound, answer.WaitsFor{Limit: name, Group: part, Of: bound.Concurrency, Paused: def.Paused, HeldBy: []answer.Slot{}}}
}

// count counts a slot that is held, if the limit does.
func (w *waitsFor) count(h *wire.HeldSlot) {
	if _, part := w.def.Of(h.Group); !w.def.Covers(h.Group) || part != w.shown.Group {
		return
	}
	if w.shown.Used++; len(w.shown.HeldBy) < mostParts {
		w.shown.HeldBy = append(w.shown.HeldBy, answer.NewSlot(h))
	}
}

// answer returns the answer once all slots are counted.
func (w *waitsFor) answer(rates map[string]int64, now time.Time) answer.WaitsFor {
	shown := w.shown
	shown.Opens = occupancy.Opens(rates, shown.Limit, w.bound.Rate, shown.Group, now)
	shown.Blocks = shown.Paused || shown.Opens > 0 || shown.Of > 0 && int64(shown.Used) >= shown.Of
	return shown
}

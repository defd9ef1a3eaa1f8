package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// limitsAPI shows and changes limits, and shows what they count.
type limitsAPI struct {
	*definer
	entries *tracker.Reader
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
	counts, err := a.count()
	if err != nil {
		return nil, err
	}
	all := []answer.Limit{}
	for _, d := range a.entries.Limits.Limits() {
		shown, _ := a.answer(d, counts)
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
	counts, err := a.count()
	if err != nil {
		return nil, err
	}
	shown, parts := a.answer(d, counts)
	if len(parts) > mostParts {
		shown.PartsLeftOff = len(parts) - mostParts
		parts = parts[:mostParts]
	}
	shown.Parts = parts
	return shown, nil
}

// groupCounts are what waits and what is out of each group.
type groupCounts struct {
	waiting, used map[wire.Group]int
	more          bool // there are more that wait
}

// maxCounted is how many waiting jobs are counted for an answer.
const maxCounted = 200_000

func (a *limitsAPI) count() (c groupCounts, err error) {
	c = groupCounts{waiting: map[wire.Group]int{}, used: map[wire.Group]int{}}
	c.more, err = a.entries.CountGroups(maxCounted, a.now(), c.waiting)
	if err != nil {
		return c, err
	}
	return c, a.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		c.used[h.Group]++
		return true
	})
}

// answer returns the answer about a limit, and its parts: first those that have most jobs waiting.
func (a *limitsAPI) answer(d *wire.DefinedLimit, c groupCounts) (answer.Limit, []answer.LimitPart) {
	shown := answer.Limit{Name: d.Name, State: "active", Definition: json.RawMessage("{}"), Layers: map[string]answer.PeriodicLayer{}, WaitingMore: c.more}
	for name, l := range d.Layers {
		shown.Layers[name] = answer.PeriodicLayer{Source: l.Source, Value: l.Value, At: l.At, Actor: l.Actor}
	}
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
	parts := map[wire.Group]*answer.LimitPart{}
	part := func(g wire.Group) *answer.LimitPart {
		bound, of := def.Of(g)
		p := parts[of]
		if p == nil {
			p = &answer.LimitPart{Group: of, Concurrency: bound.Concurrency}
			parts[of] = p
		}
		return p
	}
	for g, n := range c.waiting {
		if def.Covers(g) {
			part(g).Waiting += n
		}
	}
	for g, n := range c.used {
		if def.Covers(g) {
			part(g).Used += n
		}
	}
	var all []answer.LimitPart
	for _, p := range parts {
		shown.Waiting, shown.Used = shown.Waiting+p.Waiting, shown.Used+p.Used
		if p.Concurrency > 0 && int64(p.Used) >= p.Concurrency {
			shown.Full++
		}
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b answer.LimitPart) int { return a.Compare(&b) })
	return shown, all
}

// set sets the operator's layer of a limit.
func (a *limitsAPI) set(in *problem.Request) error {
	return a.define(in, func(one json.RawMessage) *wire.Definitions { return &wire.Definitions{Limits: []json.RawMessage{one}} })
}

// forget removes a limit, or a layer of it.
func (a *limitsAPI) forget(in *problem.Request) error {
	name := in.PathParam("name")
	in.Query("layer")
	_, err := a.command(in, wire.Command{Command: wire.CommandForget, Limit: name, Layer: in.Text("layer"), Reason: readReason(in)})
	return err
}

// pause returns a handler that pauses or resumes a limit.
func (a *limitsAPI) pause(verb string) handler {
	return func(in *problem.Request) error {
		name := in.PathParam("name")
		in.Query()
		_, err := a.command(in, wire.Command{Command: verb, Limit: name, Reason: readReason(in)})
		return err
	}
}

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
	for _, d := range a.entries.Limits.Limits() {
		if def, fault := d.Definition(); fault == nil && def.Covers(s.Group()) {
			all = append(all, newWaitsFor(d.Name, def, s.Group()))
		}
	}
	err = a.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		for _, w := range all {
			w.count(h)
		}
		return true
	})
	for _, w := range all {
		out.Limits = append(out.Limits, w.answer(rates, a.now()))
	}
	return out, err
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
	if r := w.bound.Rate; r != nil {
		if opens := float64(rates[wire.RateID(shown.Limit, r, shown.Group)]-r.Ahead()) / 1e6; opens > wire.Seconds(now) {
			shown.Opens = opens
		}
	}
	shown.Blocks = shown.Paused || shown.Opens > 0 || shown.Of > 0 && int64(shown.Used) >= shown.Of
	return shown
}

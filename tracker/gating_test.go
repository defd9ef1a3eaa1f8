package tracker

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// govern journals a layer of a governed queue, none if value is empty. It returns the turn.
func (h *history) govern(queue, value string) int64 {
	return h.record(wire.JournalRecord{Type: wire.TypeDefined, Defined: []wire.Defined{{Kind: wire.KindQueue, Name: queue, Layer: wire.LayerCode, Source: "s", Value: []byte(value)}}})
}

func (h *history) restate(queue string, turn int64, state string) {
	h.record(wire.JournalRecord{Type: wire.TypeGoverned, Restated: []wire.Restated{{Queue: queue, Turn: turn, State: state}}})
}

// gatingStories are stories of governed queues.
var gatingStories = map[string]story{
	"governed, with entries from before": {func(h *history) {
		h.entry(sched, "a", 1)
		h.open()
		h.govern("a", `{"key":"class"}`)
		h.entry(retry, "a2", 1)
	}, outcome{sched: []string{"0:a"}, retry: []string{"1:a2"}, due: []string{"a/scheduled_jobs:0", "a/retries:1"}}},
	"governed, fired": {func(h *history) {
		a := h.entry(gated, "a", 1)
		h.open()
		h.govern("a", `{}`)
		h.confirmed(h.fire(gated, a, "a"))
	}, outcome{}},
	"governed while a fire is in doubt that is returned": {func(h *history) {
		a := h.entry(gated, "a", 1)
		h.open()
		seq := h.fire(gated, a, "a")
		h.govern("a", `{}`)
		h.takeBack(seq, gated, a, "a")
	}, outcome{due: []string{"a/jobs.gated:0"}}},
	"governed, then no longer": {func(h *history) {
		h.entry(gated, "a", 1)
		h.open()
		h.govern("a", `{"key":"jid"}`)
		h.restate("a", h.govern("a", ""), "")
		h.entry(gated, "a2", 1)
	}, outcome{due: []string{"a/jobs.gated:0", "a/jobs.gated:2"}}},
}

// groupsOf returns the groups of a view, with how many entries each has.
func (o *one) groupsOf() []string {
	counts := map[wire.Group]int{}
	_, err := o.CountGroups(1000, time.Unix(1<<40, 0), counts)
	require.NoError(o.t, err)
	var all []string
	for _, g := range slices.SortedFunc(maps.Keys(counts), wire.Group.Compare) {
		all = append(all, fmt.Sprintf("%s %s %s: %d", g.Queue, g.Class, g.Key, counts[g]))
	}
	return all
}

// job appends a job to jobs.gated.
func (h *history) job(members string) {
	h.append(gated, client, nil, `{"class":"C","queue":"q",`+members+`}`)
}

// The key of a governed queue's job is what its own gate says, else a text or a number in it.
func TestGovernedQueueReadsKeysOfJobs(t *testing.T) {
	h := newHistory()
	h.job(`"args":[{"id":42}]`)
	h.job(`"args":[{"id":"forty-two"}]`)
	h.job(`"args":[{"id":1.50}]`)
	h.job(`"args":[{"id":"f\u006frty-two"}]`)
	h.job(`"args":[{"id":42}],"gate":{"key":"own"}`)
	h.job(`"args":[{"id":42}],"gate":{}`)
	for _, odd := range []string{`[]`, `[{}]`, `[{"id":null}]`, `[{"id":{}}]`, `[{"id":true}]`, `[{"id":"\u0001"}]`, `{"0":{"ID":1}}`} {
		h.job(`"args":` + odd)
	}
	h.open()
	turn := h.govern("q", `{"key":"args.0.id"}`)
	o := newOne(t).inOrder(h)
	require.Equal(t, []string{"q C : 7", "q C 1.50: 1", "q C 42: 2", "q C forty-two: 2", "q C own: 1"}, o.groupsOf())
	require.Equal(t, wire.QueueSwitching, o.Governed.GovernedQueue("q").State)
	require.Equal(t, turn, o.Governed.GovernedQueue("q").Turn)

	r := o.read(h, true)
	for stream := range h.streams {
		r.at[stream] = len(h.of(stream, 0))
	}
	h.restate("q", turn, wire.QueueDraining)
	h.restate("q", turn, "")
	h.restate("q", turn+1, wire.QueueFull)
	r.finish()
	require.Equal(t, wire.QueueDraining, o.Governed.GovernedQueue("q").State, "a state of another turn does not count")

	left := h.govern("q", "")
	r.finish()
	require.Equal(t, wire.QueueLeaving, o.Governed.GovernedQueue("q").State)
	require.Equal(t, []string{"q C : 1", "q C own: 1"}, o.groupsOf(), "what has a gate of its own stays gated")
	h.restate("q", left, wire.QueueGoverned)
	r.finish()
	require.Equal(t, wire.QueueLeaving, o.Governed.GovernedQueue("q").State)
	h.restate("q", left, "")
	r.finish()
	require.Nil(t, o.Governed.GovernedQueue("q"))
	requireSound(t, o)
}

// A slot is counted under the key that the queue's definition finds.
func TestSlotsOfGovernedQueuesHaveKeys(t *testing.T) {
	h := newHistory()
	h.open()
	h.govern("c", `{"key":"class"}`)
	c := h.entry(sched, "c", 1)
	h.fire(sched, c, "c")
	h.govern("c", `{"key":"class","ahead":3}`)
	o := newOne(t).inOrder(h)
	held, err := o.Slots.HeldSlot(sched, c, "c")
	require.NoError(t, err)
	require.Equal(t, wire.Group{Queue: "c", Class: "C", Key: "c"}, held.Group, "its own gate has a key")
}

// Governed queues that are written again at low water replace those that were known.
func TestGovernedQueuesAreWrittenAgain(t *testing.T) {
	h := newHistory()
	h.open()
	h.govern("a", `{}`)
	h.govern("b", `{"ahead":2}`)
	o := newOne(t).inOrder(h)
	b := *o.Governed.GovernedQueue("b")
	b.State = wire.QueueGoverned
	r := o.read(h, true)
	for stream := range h.streams {
		r.at[stream] = len(h.of(stream, 0))
	}
	h.record(wire.JournalRecord{Type: wire.TypeState, Queues: &wire.QueuePiece{Queues: []wire.DefinedQueue{b}}})
	r.finish()
	require.Equal(t, []*wire.DefinedQueue{&b}, o.Governed.GovernedQueues())
	o.restart()
	require.Equal(t, []*wire.DefinedQueue{&b}, o.Governed.GovernedQueues(), "a new process knows them")
}

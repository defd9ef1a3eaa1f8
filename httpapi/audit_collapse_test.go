package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// journaled writes what the leader journals of an operation: its begin, what it does to each of n
// jobs, and its end.
func (w *world) journaled(id, actor string, n int) {
	w.began(id, actor)
	w.did(id, actor, n)
	w.ended(id)
}

func (w *world) began(id, actor string) {
	w.journal(wire.JournalRecord{Type: wire.TypeOperation, At: 1, Operation: &wire.Operation{ID: id, Action: wire.CommandDelete, Stream: wire.Retries,
		Filter: &wire.Filter{}, State: wire.OperationRunning, Actor: actor}})
}

func (w *world) did(id, actor string, n int) {
	for i := range n {
		w.journal(wire.JournalRecord{Type: wire.TypeDeleted, At: 2, Stream: wire.Retries, Offset: int64(i), JID: fmt.Sprint(id, "-", i), Actor: actor, InOperation: id})
	}
}

func (w *world) ended(id string) {
	w.journal(wire.JournalRecord{Type: wire.TypeOperation, At: 3, Operation: &wire.Operation{ID: id, State: wire.OperationDone}})
}

func (w *world) paused(queue, actor string) {
	paused := map[string]wire.Pause{queue: {At: 7}}
	w.journal(wire.JournalRecord{Type: wire.TypeState, At: 7, Queue: queue, Paused: &paused, Actor: actor})
}

// inShort summarizes a list of actions: what was done, to how many jobs, and to which.
func inShort(p pastPage) string {
	var all []string
	for _, i := range p.Items {
		text := fmt.Sprint(i["op"])
		for _, name := range []string{"operation", "state", "queue", "jid", "count"} {
			if i[name] != nil {
				text += fmt.Sprint(" ", i[name])
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// everyPage reads a list page by page.
func (w *world) everyPage(query string, limit int) string {
	w.t.Helper()
	var all []string
	target := fmt.Sprintf("/api/journal?%s&limit=%d", query, limit)
	for next := ""; ; {
		p := w.past(target + next)
		if len(p.Items) > 0 {
			all = append(all, inShort(p))
		}
		require.LessOrEqual(w.t, len(p.Items), limit)
		if p.Next == nil {
			return strings.Join(all, ", ")
		}
		require.NotEmpty(w.t, p.Items, "a page that was announced is not empty")
		next = "&next=" + url.QueryEscape(*p.Next)
	}
}

func TestJournalFilteredByQueue(t *testing.T) {
	w := newWorld(t)
	w.paused("low", "ann")
	w.paused("high", "bob")
	w.journal(wire.JournalRecord{Type: wire.TypeNoted, At: 9, Noted: &wire.Noted{Op: wire.NotedMoved, Queue: "high", To: "low"}, Actor: "ann"})
	w.journal(wire.JournalRecord{Type: wire.TypeNoted, At: 9, Noted: &wire.Noted{Op: wire.NotedRetyped, Queue: "high", To: "quorum"}, Actor: "ann"})
	w.journaled("op", "ann", 3)
	require.Equal(t, "moved high, paused low", inShort(w.past("/api/journal?queue=low")))
	require.Equal(t, "retyped high, moved high, paused high", inShort(w.past("/api/journal?queue=high")))
	require.Equal(t, "moved high", inShort(w.past("/api/journal?queue=low&op=moved&actor=ann")))
	require.Empty(t, w.past("/api/journal?queue=quorum").Items, "this is a type of queues")
	require.Equal(t, "retyped high, moved high, paused high", w.everyPage("queue=high", 1))
	require.Equal(t, "operation op done, deleted op op-2, deleted op op-1, deleted op op-0, operation op running", w.everyPage("operation=op", 2))
}

func TestOperationIsOneJournalItem(t *testing.T) {
	w := newWorld(t)
	w.journaled("first", "ann", 5)
	w.paused("low", "bob")
	w.began("second", "ann")
	w.began("third", "bob")
	w.did("second", "ann", 2)
	w.did("third", "bob", 4)
	w.paused("high", "bob")
	w.did("second", "ann", 1)
	w.ended("second")
	w.began("fourth", "ann")
	want := "operation fourth running, operation second done 3, paused high, deleted third 4, paused low, operation first done 5"
	for limit := 1; limit <= 6; limit++ {
		require.Equal(t, want, w.everyPage("collapse=operations", limit), "in pages of %d", limit)
	}
	for query, want := range map[string]string{
		"actor=bob":           "paused high, deleted third 4, paused low",
		"op=deleted":          "deleted second 3, deleted third 4, deleted first 5",
		"op=operation":        "operation fourth running, operation second done 3, operation third running 4, operation first done 5",
		"queue=low":           "paused low",
		"actor=ann&op=paused": "",
		"to=3":                "operation fourth running, deleted second 3, deleted third 4, deleted first 5",
	} {
		for limit := 1; limit <= 5; limit++ {
			require.Equal(t, want, w.everyPage("collapse=operations&"+query, limit), "%s in pages of %d", query, limit)
		}
	}
	first := w.past("/api/journal?collapse=operations").Items[3]
	require.Nil(t, first["offset"])
	require.Equal(t, "retries", first["set"])
	for _, query := range []string{"collapse=all", "collapse=operations&jid=a", "collapse=operations&operation=first", "next=1,", "next=1,%25", "next=,a", "next=%2B1", "next=-1"} {
		w.get("/api/journal?"+query).problem(t, http.StatusBadRequest, "bad_request")
	}
}

// If an operation is no longer among the newest hundred, only the journal has the number of its
// jobs.
func TestJobsOfForgottenOperationAreCounted(t *testing.T) {
	w := newWorld(t)
	w.journaled("old, with a comma", "ann", 7)
	w.paused("low", "bob")
	for i := range 100 {
		w.journaled(fmt.Sprint("op-", i), "ann", 1)
	}
	w.get("/api/operations/old%2C%20with%20a%20comma").problem(t, http.StatusNotFound, "not_found")
	all := w.everyPage("collapse=operations", 101)
	require.True(t, strings.HasSuffix(all, "operation op-0 done 1, paused low, operation old, with a comma done 7"), all[len(all)-200:])
	require.Equal(t, all, w.everyPage("collapse=operations", 3))
}

// A call reads at most so many actions. A larger operation continues in the next call, and is not
// listed twice.
func TestLargeOperationIsOneItemAcrossCalls(t *testing.T) {
	w := newWorld(t)
	w.server.SetMaxSearched(40)
	w.paused("low", "bob")
	w.journaled("op", "ann", 100)
	var seen []string
	for target, calls := "/api/journal?collapse=operations", 0; target != ""; calls++ {
		p := w.past(target)
		require.LessOrEqual(t, p.Searched, 40)
		for range p.Items {
			seen = append(seen, inShort(p))
		}
		if target = ""; p.Next != nil {
			target = "/api/journal?collapse=operations&next=" + url.QueryEscape(*p.Next)
		}
		require.Less(t, calls, 20)
	}
	require.Equal(t, []string{"operation op done 100", "paused low"}, seen)
}

package wire

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// journalRecords returns one record of each type.
func journalRecords() []JournalRecord {
	entry := json.RawMessage(`{ "scheduled_at" : 1, "job":{"class":"<A>","args":["\u0000é` + "\u2028" + `"]} }`)
	return []JournalRecord{
		{Type: TypeOpened, At: 1.5, Format: Format, Identity: "host/1", LowWater: map[string]int64{Retries: 7}, Needs: 3,
			Held: map[string]int64{ScheduledJobs: 9}, KnownConfirmed: &Confirmed{Epoch: 2, Through: 8}},
		{Type: TypeWitness, Epoch: 1, Queue: "jobs.boot.x"},
		{Type: TypeConfirmed, Epoch: 1, Through: 12},
		{Type: TypeConfirmed, Epoch: 1, Through: 12, Above: Ranges{{14, 20}}, Ended: true},
		{Type: TypeReturned, Epoch: 1, Seq: 5, Reason: "nack", Stream: ScheduledJobs, Offset: 0},
		{Type: TypeDelivered, Epoch: 4, Seq: 5, FiredEpoch: 1, Stream: ScheduledJobs, Offset: 3, JID: "j"},
		{Type: TypeUnburied, Epoch: 4, Seq: 5, FiredEpoch: 1, Stream: Retries, Offset: 3, JID: "j"},
		{Type: TypeRefused, Epoch: 1, Stream: Retries, Offset: 3, JID: "j", Error: "too \"large\""},
		{Type: TypeDuplicate, Epoch: 1, Stream: Retries, Offset: 3, JID: "j"},
		{Type: TypeExpired, Epoch: 1, Stream: Retries, Offset: 3, JID: "j"},
		{Type: TypeDeleted, Epoch: 1, Stream: ScheduledJobs, Offset: 3, JID: "j", Actor: "a", Command: "c", Reason: "r", Entry: entry},
		{Type: TypeChanged, Epoch: 1, Stream: ScheduledJobs, Offset: 3, JID: "j", Entry: entry},
		{Type: TypeKilled, Epoch: 1, Stream: ScheduledJobs, Offset: 3, JID: "j", Entry: entry},
		{Type: TypeTrimmed, Epoch: 1, Stream: DeadJobs, Entries: []Trimmed{{100, "j"}}, Count: 10},
		{Type: TypeLowWater, Epoch: 1, LowWater: map[string]int64{ScheduledJobs: 1, Retries: 2}, Needs: 50},
		{Type: TypeRecreated, Epoch: 1, Stream: DeadJobs},
		{Type: TypeReleased, Epoch: 1},
		{Type: TypeState, Epoch: 1, Operation: &Operation{ID: "x", State: "running"}},
		{Type: TypeOperation, Epoch: 1, Operation: &Operation{ID: "x", State: "running"}},
		{Type: TypeRejected, Epoch: 1, Queue: Unrouted, Reason: "no job", Body: []byte("\x00\xff"), Count: 2},
		{Type: TypeDismissed, Epoch: 1, Stream: Unrouted, Offset: 44},
		{Type: TypeNoted, Epoch: 1, Noted: &Noted{Op: NotedMoved, Queue: "a", To: "b", Count: 3}, Actor: "a", Reason: "r"},
		{Type: TypeBarrier, Epoch: 1},
		{Type: TypeDefined, Epoch: 1, Defined: []Defined{{Kind: KindPeriodic, Name: "n", Layer: LayerCode, Source: "s", Value: json.RawMessage(`{"every":60}`), Since: 7}}},
		{Type: TypeTicked, Epoch: 1, Ticks: []Tick{{Periodic: "n", Tick: 120, Outcome: TickMade, JID: "j", By: new(int64)}}},
		{Type: TypeState, Epoch: 1, Periodics: &PeriodicPiece{After: "a", Through: "n", Jobs: []PeriodicJob{{Name: "n", Layers: map[string]DefinedLayer{}, Through: 3}}}},
	}
}

func TestJournalRecordsRoundTrip(t *testing.T) {
	for _, r := range journalRecords() {
		t.Run(r.Type, func(t *testing.T) {
			m := r.Append("to", 3, 2)
			require.Equal(t, "to", m.Key)
			require.Empty(t, m.Exchange)
			require.Equal(t, map[string]any{HeaderFormat: int64(Format), HeaderEpoch: r.Epoch, HeaderSeq: int64(3), HeaderConfirmed: int64(2)}, m.Headers)
			got, err := ParseJournal(m.Body)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(r, got), "an entry's bytes come back as they were")
			_, isDispatch := DispatchOf(m.Headers)
			require.False(t, isDispatch)
		})
	}
}

func TestJournalRefuses(t *testing.T) {
	for body, reason := range map[string]string{
		``:                      "record is not valid JSON",
		`[]`:                    "record is not a JSON object",
		`{}`:                    "journal record has no type",
		`{"type":""}`:           "journal record has no type",
		`{"type":1}`:            "journal record: json: cannot unmarshal number into Go struct field JournalRecord.type of type string",
		`{"type":"x","seq":""}`: "journal record: json: cannot unmarshal string into Go struct field JournalRecord.seq of type int64",
	} {
		_, err := ParseJournal([]byte(body))
		require.EqualError(t, err, reason)
	}
	_, err := ParseJournal([]byte(strings.Repeat("[", 10_000_000)))
	require.Error(t, err)
}

// A record that would be too large to read is written without its entry. The rest of it counts.
func TestJournalRecordsAreLimited(t *testing.T) {
	for size, kept := range map[int]bool{MaxRecord - 50: false, MaxRecord - 1000: true} {
		head, tail := `{"jid":"j","scheduled_at":1,"job":{"class":"A","args":"`, `"}}`
		e, err := ParseEntry(ScheduledJobs, 0, []byte(head+strings.Repeat("x", size-len(head)-len(tail))+tail))
		require.NoError(t, err)
		m := JournalRecord{Type: TypeDeleted, Stream: e.Stream, JID: JIDTag(e.JID), Entry: e.Raw}.Append(Journal, 1, 0)
		require.LessOrEqual(t, len(m.Body), MaxRecord)
		got, err := ParseJournal(m.Body)
		require.NoError(t, err)
		require.Equal(t, e.Stream, got.Stream)
		require.Equal(t, kept, got.Entry != nil)
	}
}

func TestAppendOfInvalidJSON(t *testing.T) {
	require.Panics(t, func() {
		JournalRecord{Type: TypeState, At: math.NaN()}.Append(Journal, 0, 0)
	})
}

func TestDispatchHeadersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~]{0,20}`)
		d := Dispatch{Op: text.Draw(t, "op"), Stream: text.Draw(t, "stream"), Offset: rapid.Int64().Draw(t, "offset"), JIDTag: text.Draw(t, "jid"),
			Epoch: rapid.Int64().Draw(t, "epoch"), Seq: rapid.Int64().Draw(t, "seq"), Confirmed: rapid.Int64().Draw(t, "confirmed"),
			Actor: text.Draw(t, "actor"), Command: text.Draw(t, "command")}
		got, ok := DispatchOf(d.Headers())
		require.True(t, ok)
		require.Equal(t, d, got)
	})
	_, ok := DispatchOf(map[string]any{HeaderOp: int64(1)})
	require.False(t, ok)
	d, ok := DispatchOf(map[string]any{HeaderOp: OpFired, HeaderOffset: "7", HeaderStream: int64(1), HeaderSeq: 7})
	require.True(t, ok)
	require.Equal(t, Dispatch{Op: OpFired}, d, "headers of other types say nothing")
	require.Equal(t, "Andr?", Dispatch{Actor: "André"}.Headers()[HeaderActor])
}

func TestBurials(t *testing.T) {
	burial := map[string]bool{OpBuried: true, OpExpired: true}
	for _, op := range []string{OpFired, OpTriggered, OpRetried, OpEnqueued, OpRefired, OpBuried, OpExpired} {
		require.Equal(t, burial[op], Dispatch{Op: op}.Burial(), op)
	}
}

func TestFireAndBury(t *testing.T) {
	now := time.Unix(1700000000, 0)
	job := &Job{JID: "j", Class: "C", Queue: "q", Priority: 7}
	d := Dispatch{Op: OpFired, Stream: Retries, Offset: 3, JIDTag: "j", Epoch: 1, Seq: 2, Confirmed: 1}
	body := []byte("{}")
	require.Equal(t, Message{Exchange: "jobs.fire", Key: "q", MessageID: "j", Type: "C", Priority: 7, Timestamp: now, Headers: d.Headers(),
		Body: body}, Fire(job, d, body, now))
	require.Equal(t, Message{Exchange: "jobs.bury", Key: "dead_jobs", MessageID: "j", Type: "C", Timestamp: now, Headers: d.Headers(),
		Body: body}, Bury(job, d, body, now))
}

// The most deeply nested job that is accepted can still be buried, retried and journaled.
func TestDeepestEntryFitsIntoJournal(t *testing.T) {
	deep := strings.Repeat("[", shared.MaxJobDepth-1) + strings.Repeat("]", shared.MaxJobDepth-1)
	job, err := ParseJob([]byte(`{"class":"A","args":` + deep + `}`))
	require.NoError(t, err)
	e, err := ParseEntry(DeadJobs, 0, DeadJob(DeadEnvelope{JID: "j", DiedAt: time.Unix(1, 0)}, job.Raw))
	require.NoError(t, err)
	again, err := e.Dead(time.Unix(2, 0), "", "")
	require.NoError(t, err)
	_, err = ParseEntry(DeadJobs, 0, again)
	require.NoError(t, err)
	j, err := ParseJournal(JournalRecord{Type: TypeDeleted, Entry: e.Raw}.Append(Journal, 0, 0).Body)
	require.NoError(t, err)
	require.Equal(t, string(e.Raw), string(j.Entry))
}

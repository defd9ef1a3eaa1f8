package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// seed adds the small vectors of a file to the corpus.
func seed(f *testing.F, file string, add func(*vector)) {
	for _, v := range vectors(f, file) {
		if v.Build == nil && len(v.bytes()) < 4096 {
			add(&v)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	seed(f, "entries", func(v *vector) { f.Add(uint8(slices.Index(EntryStreams, v.Stream)), v.Offset, v.bytes()) })
	f.Fuzz(func(t *testing.T, stream uint8, offset int64, body []byte) {
		name := EntryStreams[int(stream)%len(EntryStreams)]
		before := bytes.Clone(body)
		e, err := ParseEntry(name, offset, body)
		require.Equal(t, before, body)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Less(t, len(err.Error()), 400, "a reason is for people")
			return
		}
		require.Equal(t, body, e.Raw)
		require.NotEmpty(t, e.JID)
		require.NotEmpty(t, e.Job.JID)
		requireObjectRead(t, body, entryMembers)
		requireBody(t, &e)
		requireDead(t, &e)
		requireItem(t, &e)
		requireJournaled(t, &e)
	})
}

// fired is when the jobs of these tests are fired.
var fired = time.Unix(1800000000, 500000000)

// requireBody checks that the job leaves as it came, except for what Millrace must set.
func requireBody(t *testing.T, e *Entry) {
	t.Helper()
	before := bytes.Clone(e.Job.Raw)
	body, err := e.Body(fired)
	require.NoError(t, err)
	require.Equal(t, before, e.Job.Raw)
	want := string(before)
	o, err := shared.ParseObject(want, shared.JobMembers)
	require.NoError(t, err)
	if jid, _ := o.Text("jid"); jid == "" {
		want = setByReference(t, []byte(want), "jid", shared.Quote(e.Job.JID))
	}
	switch e.Stream {
	case Retries:
		want = setByReference(t, []byte(want), "retry_count", string(mustMarshal(t, e.Attempt)))
	case Gated: // the job must name its queue
		if queue, _ := o.Text("queue"); queue == "" {
			want = setByReference(t, []byte(want), "queue", shared.Quote(e.Job.Queue))
		}
	case DeadJobs:
		if o.Has("enqueued_at") {
			want = setByReference(t, []byte(want), "enqueued_at", "1800000000.5")
		}
		want = setByReference(t, []byte(want), "retry_count", "0")
	}
	require.Equal(t, want, string(body))
	job, err := ParseJob(body)
	require.NoError(t, err)
	again := e.Job
	again.Raw = body
	if e.Stream != ScheduledJobs {
		again.RetryCount = job.RetryCount
	}
	require.Empty(t, cmp.Diff(again, job))
}

// requireDead checks that a burial has the same job.
func requireDead(t *testing.T, e *Entry) {
	t.Helper()
	at := time.Unix(1700000000, 123456000).UTC()
	raw, err := e.Dead(at, "Cla\"ss", "mess\xffage")
	require.NoError(t, err)
	dead, err := ParseEntry(DeadJobs, 1, raw)
	require.NoError(t, err)
	require.Equal(t, []any{e.JID, at, e.Attempt, "Cla\"ss", "mess\ufffdage"},
		[]any{dead.JID, dead.At, dead.Attempt, dead.ErrorClass, dead.ErrorMessage})
	want, err := withJID(e.Job.Raw, e.Job.JID)
	require.NoError(t, err)
	require.Equal(t, string(want), string(dead.Job.Raw))
}

// requireItem checks that the API shows the record with one more member. It shows a record of
// jobs.gated, which is a bare job, as an entry with that job.
func requireItem(t *testing.T, e *Entry) {
	t.Helper()
	item := e.Item(3)
	require.True(t, json.Valid(item), "%s", item)
	has := members(t, item)
	last := has[len(has)-1]
	require.Equal(t, "millrace", last.name)
	if e.Stream == Gated {
		require.Equal(t, []string{"jid", "job"}, []string{has[0].name, has[1].name})
		require.Equal(t, string(bytes.Trim(e.Raw, " \t\r\n")), string(bytes.Trim(item[has[1].from:has[1].to], " \t\r\n")))
	} else {
		had := members(t, e.Raw)
		require.Equal(t, had, has[:len(has)-1])
		require.True(t, bytes.HasPrefix(item, e.Raw[:had[len(had)-1].to]))
	}
	var shown struct {
		Offset, FirstOffset int64
		Queue, Class        string
		Attempt             int
		At                  float64
	}
	require.NoError(t, json.Unmarshal(item[last.from:last.to], &shown))
	require.Equal(t, []any{e.Offset, e.Job.Queue, e.Job.Class, e.Attempt, Seconds(e.At)},
		[]any{shown.Offset, shown.Queue, shown.Class, shown.Attempt, shown.At})
}

// requireJournaled checks that the journal can keep the entry's bytes.
func requireJournaled(t *testing.T, e *Entry) {
	t.Helper()
	m := JournalRecord{Type: TypeDeleted, Stream: e.Stream, Offset: e.Offset, JID: JIDTag(e.JID), Entry: e.Raw}.Append(Journal, 1, 0)
	j, err := ParseJournal(m.Body)
	require.NoError(t, err)
	require.Equal(t, string(bytes.Trim(e.Raw, " \t\r\n")), string(j.Entry))
}

func mustMarshal(t require.TestingT, v any) []byte {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

func FuzzParseJob(f *testing.F) {
	seed(f, "jobs", func(v *vector) { f.Add(v.bytes()) })
	f.Fuzz(func(t *testing.T, body []byte) {
		if shared.CheckRecord(body) == nil {
			requireObjectRead(t, body, shared.JobMembers)
		}
		job, err := ParseJob(body)
		if err != nil {
			return
		}
		require.Equal(t, body, job.Raw)
		require.NoError(t, CheckQueueName(job.Queue))
		require.NotEmpty(t, job.Class)
		record := DeadJob(DeadEnvelope{JID: "x", DiedAt: time.Unix(1, 0)}, body)
		dead, err := ParseEntry(DeadJobs, 0, record)
		require.NoError(t, err, "a job that is read can be buried")
		require.Equal(t, string(bytes.Trim(body, " \t\r\n")), string(dead.Job.Raw))
	})
}

func FuzzParseJournal(f *testing.F) {
	for _, r := range journalRecords() {
		f.Add(r.Append(Journal, 1, 0).Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseJournal(body)
		if err != nil {
			return
		}
		again, err := ParseJournal(r.Append(Journal, 1, 0).Body)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(compacted(t, r), compacted(t, again)))
	})
}

// compacted returns a record as it comes back. Marshal reformats everything but an entry's bytes,
// and leaves out empty members.
func compacted(t *testing.T, r JournalRecord) JournalRecord {
	if len(r.Entries) == 0 {
		r.Entries = nil
	}
	if op := r.Operation; op != nil && len(op.JIDs) == 0 {
		op.JIDs = nil
	}
	if len(r.Body) == 0 {
		r.Body = nil
	}
	if len(r.Held) == 0 {
		r.Held = nil
	}
	if len(r.LowWater) == 0 {
		r.LowWater = nil
	}
	return r
}

func FuzzParseCommand(f *testing.F) {
	seed(f, "commands", func(v *vector) { f.Add(v.bytes()) })
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := ParseCommand(body)
		if err != nil {
			return
		}
		again, err := ParseCommand(mustMarshal(t, c))
		require.NoError(t, err)
		if c.Changes != nil {
			c.Changes = mustMarshal(t, c.Changes)
		}
		require.Empty(t, cmp.Diff(c, again))
		require.Contains(t, commandStreams, c.Command)
	})
}

func FuzzParseChanges(f *testing.F) {
	for _, raw := range []string{`{"at":2e9}`, `{"at":"2033-05-18T03:33:20Z","queue":"low"}`, `{"priority":10,"args":[1e400,{"a":null}]}`, `{"queue":null}`, `{"at":1,"at":2}`, `{"args" : "x" }`} {
		for i := range uint8(len(EntryStreams)) {
			f.Add(i, []byte(raw))
		}
	}
	records := map[string]string{
		ScheduledJobs: `{"jid":"j","scheduled_at":1, "job":{"class":"A","args":[1],"x":1e400}}`,
		Retries:       `{"retry_at":1,"retry_count":2,"job":{"jid":"j","class":"A","queue":"q","priority":3}}`,
		DeadJobs:      `{"died_at":1,"job":{"class":"A"}}`,
		Gated:         `{"class":"A","args":[1],"queue":"q","x":1e400}`,
	}
	f.Fuzz(func(t *testing.T, stream uint8, raw []byte) {
		name := EntryStreams[int(stream)%len(EntryStreams)]
		c, err := ParseChanges(name, raw)
		if err != nil {
			require.Less(t, len(err.Error()), 400, "a reason is for people")
			return
		}
		e, err := ParseEntry(name, 7, []byte(records[name]))
		require.NoError(t, err)
		changed, err := e.Change(c)
		if err != nil { // nested too deep for an entry
			require.ErrorContains(t, err, "changed like that it could not be read")
			return
		}
		again, err := ParseEntry(name, 8, changed)
		require.NoError(t, err, "%s", changed)
		if c.At != nil {
			require.WithinDuration(t, *c.At, again.At, time.Millisecond) // far years are inexact
		}
		if c.Queue != nil {
			require.Equal(t, *c.Queue, again.Job.Queue)
		}
		if c.Priority != nil {
			require.EqualValues(t, *c.Priority, again.Job.Priority)
		}
		if c.Args != nil {
			require.Contains(t, string(again.Job.Raw), `"args":`+string(c.Args))
		}
	})
}

func FuzzLeasedJob(f *testing.F) {
	seed(f, "jobs", func(v *vector) { f.Add(v.bytes(), "id", uint8(3)) })
	f.Fuzz(func(t *testing.T, body []byte, id string, priority uint8) {
		d := Delivery{Body: body, MessageID: id, Priority: priority}
		before := bytes.Clone(body)
		moved := MovedJob(d, "other", time.Unix(1, 0))
		job, err := LeasedJob(&d, "q")
		require.Equal(t, before, body)
		_, fault := ParseJob(body)
		require.True(t, fault == nil || string(moved.Body) == string(body), "what is no job is passed on as it is")
		if err != nil {
			return
		}
		require.NotEmpty(t, job.JID)
		there, err := ParseJob(moved.Body)
		require.NoError(t, err)
		require.Equal(t, "other", there.Queue)
		m, err := LeaseMessage(NewLeaseID(Lease{At: time.Unix(1, 0)}), time.Unix(2, 0), &job, "", "")
		if err != nil { // too large, or nested too deep, for an entry
			return
		}
		e, err := ParseEntry(ScheduledJobs, 1, m.Body)
		require.NoError(t, err)
		require.Equal(t, string(bytes.Trim(job.Raw, " \t\r\n")), string(e.Job.Raw))
		_, ok := ParseLeaseID(e.JID)
		require.True(t, ok)
	})
}

func FuzzParseLeaseID(f *testing.F) {
	for _, id := range []string{"lease-0-1-ABCDEFGHIJKLMNOPQRSTUVWXYZ", "lease-65535-zzzzzzzz-ABCDEFGHIJKLMNOP", "lease---", "lease-0-1-é", "lease-+1-1-ABCDEFGHIJKLMNOP"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		l, ok := ParseLeaseID(id)
		if !ok {
			return
		}
		require.Equal(t, id, JIDTag(id), "the journal names it as it is")
		again, ok := ParseLeaseID(NewLeaseID(l))
		require.True(t, ok)
		require.Equal(t, l, again)
	})
}

func FuzzFingerprint(f *testing.F) {
	f.Add("C", "Timeout", "no answer from 10.0.0.1 in 3000 ms")
	f.Add("C", "E", `key "a" of 0x7f3a, id 7b1c0d9e-5a81-4b1f-9d1e-0c7c1f9f4a11, 'it''s' `)
	f.Add("\xff", "", "\"\"\"")
	f.Fuzz(func(t *testing.T, class, errorClass, message string) {
		require.True(t, IsFingerprint(Fingerprint(class, errorClass, message)))
		require.True(t, utf8.ValidString(Normalised(strings.ToValidUTF8(message, "?"))))
	})
}

func FuzzParseRollup(f *testing.F) {
	f.Add([]byte(`{"type":"rollup","format":1,"from":1,"to":9,"rows":[{"minute":5,"class":"C","queue":"q","success":1,"run":"AAA="}]}`))
	f.Add([]byte(`{"type":"deploy","format":1,"at":1.5,"label":"v1","actor":"ann"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRollup(body)
		if err != nil {
			return
		}
		m, err := r.Message(time.Unix(1, 0))
		require.NoError(t, err)
		_, err = ParseRollup(m.Body)
		require.NoError(t, err)
	})
}

func FuzzParseHeartbeat(f *testing.F) {
	seed(f, "heartbeats", func(v *vector) { f.Add(v.bytes()) })
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := ParseHeartbeat(body)
		require.Equal(t, err, CheckHeartbeat(body))
		if err != nil {
			require.Less(t, len(err.Error()), 400, "a reason is for people")
			return
		}
		requireObjectRead(t, body, heartbeatMembers)
		said := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal(body, &said))
		var identity string
		require.NoError(t, json.Unmarshal(said["identity"], &identity))
		require.Equal(t, identity, h.Identity)
		require.Contains(t, said, "beat")
		require.True(t, workerStates[h.State])
		kept := mustMarshal(t, h) // its texts are valid UTF-8 and its years have four digits
		require.Less(t, len(kept), 8*len(body)+2000)
		var again Heartbeat
		require.NoError(t, json.Unmarshal(kept, &again))
	})
}

func FuzzParseMetrics(f *testing.F) {
	seed(f, "metrics", func(v *vector) { f.Add(v.bytes()) })
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		good, bad, err := ParseMetrics(nil, body)
		require.Equal(t, before, body)
		require.Equal(t, err == nil && len(bad) == 0, CheckMetrics(body) == nil)
		if err != nil {
			require.Less(t, len(err.Error()), 400, "a reason is for people")
			require.Empty(t, good)
			return
		}
		list := body
		if shared.First(body) != '[' {
			list = slices.Concat([]byte{'['}, body, []byte{']'})
		}
		var all []json.RawMessage
		require.NoError(t, json.Unmarshal(list, &all))
		require.LessOrEqual(t, len(all), maxMetrics)
		require.Len(t, all, len(good)+len(bad), "each record is either taken or refused")
		for _, b := range bad {
			require.Equal(t, string(all[b.Index]), b.Raw)
		}
		for _, m := range good {
			requireMetric(t, m)
		}
		if len(bad) == 0 {
			return
		}
		rejected, reason := BadMetrics(bad)
		require.NotEmpty(t, reason)
		none, again, err := ParseMetrics(nil, rejected)
		require.NoError(t, err)
		require.Empty(t, none, "what was refused is refused again")
		require.Len(t, again, len(bad))
	})
}

func requireMetric(t *testing.T, m Metric) {
	t.Helper()
	require.NotEmpty(t, m.Class)
	require.NotEmpty(t, m.Queue)
	require.Contains(t, []string{MetricSuccess, MetricFailed, MetricDead, MetricDiscarded, MetricExpired}, m.Status)
	require.GreaterOrEqual(t, m.Duration, time.Duration(-1))
	require.GreaterOrEqual(t, m.Wait, time.Duration(-1))
	require.GreaterOrEqual(t, m.Attempt, int64(0))
	require.LessOrEqual(t, len(m.ErrorClass), 3*maxShown)
}

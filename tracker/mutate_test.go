package tracker

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// specimen is a good record of each kind that clients write.
var specimen = map[string][]string{
	sched: {`{"type":"scheduled_job","jid":"b4a577edbccf1d805744efa597","scheduled_at":1700000000.5,"job":{"class":"Mail","args":[1,2,"foo",{"é":"\u0000\ud83d\ude00"}],"queue":"low","retry":3,"tags":["a","b"],"priority":7,"expires_at":1900000000,"dead":false}}`,
		`{"scheduled_at":1700000000123,"job":{"class":"A"}}`},
	retry:           {`{"type":"retry","jid":"job-id","retry_at":1234567890.0,"retry_count":3,"failed_at":1234567889.0,"error_message":"Connection timeout","error_class":"TimeoutError","job":{"class":"JobClassName","args":[1,2],"queue":"default","retry":25}}`},
	dead:            {`{"type":"dead_job","jid":"job-id","died_at":1234567890.0,"retry_count":25,"error_message":"Database connection failed","error_class":"ConnectionError","job":{"class":"JobClassName","args":[1,2],"queue":"default"}}`},
	wire.Heartbeats: {`{"type":"heartbeat","identity":"hostname:pid:tag","hostname":"worker-01","pid":12345,"tag":"production","concurrency":10,"busy":3,"beat":1234567890.0,"rss_kb":204800,"queues":["critical","default","low"],"version":"1.0.0"}`},
	wire.JobMetrics: {`{"type":"job_metric","timestamp":1234567890.0,"job_class":"SendEmailJob","queue":"default","duration_ms":1234,"status":"success","worker_identity":"worker-01:1234:prod"}`,
		`[{"timestamp":1,"job_class":"A","status":"dead"},{"timestamp":1,"job_class":"B","status":"failed"}]`},
}

// fragments are texts that parsers often handle wrongly.
var fragments = []string{`"`, `\`, `{`, `}`, `[`, `]`, `:`, `,`, `null`, `true`, `1e400`, `-1`, `9007199254740993`, `"jid":"x",`, `"j\u0069d":1,`, `"class":"",`,
	`"queue":"\u0000"`, `\ud800`, "\xff", "\x00", "\n", ` `, `"type":"barrier"`, `"millrace":{}`, `{"a":{"a":{"a":`, "\ufeff", "Infinity", `"scheduled_at":null,`, `"job":{}`}

// mutate changes a record in one to three places.
func mutate(r *rand.Rand, body string) string {
	b := []byte(body)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(b) + 1)
		to := min(len(b), at+r.IntN(12))
		switch r.IntN(6) {
		case 0:
			b = slices.Delete(b, at, to)
		case 1:
			b = slices.Insert(b, at, []byte(fragments[r.IntN(len(fragments))])...)
		case 2:
			b = slices.Replace(b, at, to, []byte(fragments[r.IntN(len(fragments))])...)
		case 3:
			b = slices.Insert(b, at, slices.Clone(b[at:to])...)
		case 4:
			if at < len(b) {
				b[at] ^= 1 << r.IntN(8)
			}
		case 5:
			b = b[:at]
		}
	}
	return string(b)
}

// headers returns headers that clients may set, and headers that only Millrace may.
func headers(r *rand.Rand) map[string]any {
	if r.IntN(4) > 0 {
		return nil
	}
	all := map[string]any{}
	for range 1 + r.IntN(5) {
		names := []string{wire.HeaderFormat, wire.HeaderOp, wire.HeaderStream, wire.HeaderOffset, wire.HeaderJID, wire.HeaderEpoch, wire.HeaderSeq,
			wire.HeaderConfirmed, wire.HeaderReplaces, wire.HeaderFirst, wire.HeaderParked, wire.HeaderTraceparent}
		values := []any{int64(0), int64(1), int64(3), int64(-1), int64(1 << 62), "fired", "buried", sched, dead, "x", "", nil, true, 1.5, []byte("x")}
		all[names[r.IntN(len(names))]] = values[r.IntN(len(values))]
	}
	return all
}

// No record of a client stops the fold. Every good record is served. Each bad record is listed or
// counted, with its reason.
func TestMutatedRecordsStopNothing(t *testing.T) {
	total := 100_000
	if slow {
		total = 15_000
	}
	const batch = 500
	r := rand.New(rand.NewPCG(20, 26))
	o := newOneWith(t, 64<<20)
	h := newHistory()
	h.open()
	o.inOrder(h)
	streams := []string{sched, retry, dead, wire.Heartbeats, wire.JobMetrics, wire.Journal}
	good, bad, taken := map[string]int{}, map[string]int64{}, map[string]int{}
	for n := 0; n < total; n += batch {
		stream := streams[n/batch%len(streams)]
		h.all, h.gens = nil, nil
		for i := range batch {
			if i%10 == 0 && codes[stream] != 0 {
				h.entry(stream, fmt.Sprintf("good%d", n+i), 1_700_000_000+i)
				good[stream]++
			}
			from := specimen[stream]
			if from == nil {
				from = specimen[streams[r.IntN(5)]]
			}
			body := mutate(r, from[r.IntN(len(from))])
			offset := h.append(stream, client, headers(r), body)
			if reason := refuses(stream, offset, &h.all[len(h.all)-1]); reason {
				bad[stream]++
			} else {
				taken[stream]++
			}
		}
		o.fold(h.all...)
	}
	requireSound(t, o)
	kept, err := o.RejectedKept()
	require.NoError(t, err)
	for _, stream := range streams {
		require.Equal(t, bad[stream], o.State().Rejected[stream], stream)
		require.Equal(t, min(bad[stream], maxRejects), kept[stream], stream)
		require.Greater(t, bad[stream], int64(total/20), stream)
		reasons := map[string]bool{}
		require.NoError(t, o.Rejects(stream, func(j Reject) bool {
			require.NotEmpty(t, j.Reason)
			reasons[j.Reason] = true
			return true
		}))
		if codes[stream] != 0 {
			require.Greater(t, len(reasons), 20, "%s: there are many reasons", stream)
			require.Positive(t, taken[stream], "%s: some mutations are harmless", stream)
			require.EqualValues(t, good[stream]+taken[stream], o.Total(stream))
		}
	}
	for _, stream := range wire.EntryStreams {
		served := 0
		require.NoError(t, o.List(stream, Cursor{}, func(row Row) bool {
			if len(row.JID) > 4 && row.JID[:4] == "good" {
				served++
			}
			return true
		}))
		require.Equal(t, good[stream], served, "%s: every good record", stream)
	}
	require.Empty(t, o.listDoubts())
	require.EqualValues(t, 0, o.State().Epoch)
}

// refuses reports whether a record is bad according to encoding/json and the rules. It uses no code
// that is tested.
func refuses(stream string, offset int64, r *wire.Record) bool {
	switch stream {
	case wire.Journal:
		return true
	case wire.Heartbeats:
		return wire.CheckHeartbeat(r.Body) != nil
	case wire.JobMetrics:
		return wire.CheckMetrics(r.Body) != nil
	}
	if _, replaces := r.Headers[wire.HeaderReplaces]; replaces || !json.Valid(r.Body) {
		return true
	}
	_, err := wire.ParseEntry(stream, offset, r.Body)
	return err != nil
}

// Records of Millrace's own user that no leader would write do not stop the fold either, except for
// a newer format of the journal.
func TestMutatedJournalStopsNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 40 {
		o := newOne(t)
		h := newHistory()
		for i := range 20 {
			h.entry(wire.EntryStreams[i%4], fmt.Sprintf("a%d", i%4), i)
		}
		h.open()
		seq := h.fire(sched, 0, "a0")
		h.takeBack(seq, sched, 0, "a0", "c")
		o.inOrder(h)
		var bodies []string
		for _, j := range []wire.JournalRecord{
			{Type: wire.TypeOpened, Format: 1, LowWater: map[string]int64{sched: 2}, KnownConfirmed: &wire.Confirmed{Epoch: 0, Through: 1}},
			{Type: wire.TypeDeleted, Stream: sched, Offset: 3, JID: "a3", Command: "c"}, {Type: wire.TypeConfirmed, Through: 1},
			{Type: wire.TypeReturned, Seq: 1, Stream: retry, JID: "a1"}, {Type: wire.TypeUnburied, Seq: 1}, {Type: wire.TypeRefused, Stream: retry, Offset: 1, JID: "a4"},
			{Type: wire.TypeLowWater, LowWater: map[string]int64{retry: 2}}, {Type: wire.TypeTrimmed, Stream: dead, Entries: []wire.Trimmed{{Offset: 3, JID: "a"}}}, {Type: wire.TypeRecreated, Stream: dead},
			{Type: wire.TypeReleased}, {Type: wire.TypeRejected, Queue: sched, Reason: "x"}, {Type: wire.TypeDismissed, Stream: sched}, {Type: wire.TypeBarrier},
		} {
			bodies = append(bodies, string(j.Append(wire.Journal, 1, 0).Body))
		}
		for range 250 {
			stream := []string{wire.Journal, wire.Journal, sched, retry, dead}[r.IntN(5)]
			from := bodies
			if stream != wire.Journal && r.IntN(2) == 0 {
				from = specimen[stream]
			}
			body := from[r.IntN(len(from))]
			if r.IntN(2) == 0 {
				body = mutate(r, body)
			}
			h.append(stream, millrace, headers(r), body)
			_, err := o.try(h.all[len(h.all)-1])
			require.True(t, err == nil || errors.Is(err, view.ErrHalt), "%v", err)
			if err != nil {
				o.restart() // the batch is not written
			}
		}
		_, err := o.Doubts()
		require.NoError(t, err)
		requireRejects(t, o)
		o.close()
	}
}

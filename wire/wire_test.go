package wire

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
)

func TestBackoff(t *testing.T) {
	least, most := func(int) int { return 0 }, func(n int) int { return n - 1 }
	for count, want := range map[int][2]int{-1: {15, 45}, 0: {15, 45}, 1: {16, 76}, 2: {31, 121}, 24: {331791, 332541}} {
		require.Equal(t, time.Duration(want[0])*time.Second, Backoff(count, least), "attempt %d", count)
		require.Equal(t, time.Duration(want[1])*time.Second, Backoff(count, most), "attempt %d", count)
	}
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Int().Draw(t, "count")
		require.Positive(t, Backoff(count, most))
		if count < math.MaxInt {
			require.LessOrEqual(t, Backoff(count, least), Backoff(count+1, least))
		}
	})
}

func TestJIDTag(t *testing.T) {
	require.Equal(t, "", JIDTag(""))
	require.Equal(t, "b4a577edbccf1d805744efa597", JIDTag("b4a577edbccf1d805744efa597"))
	require.Equal(t, strings.Repeat("a", 255), JIDTag(strings.Repeat("a", 255)))
	require.Equal(t, "sha256:02d7160d77e18c6447be80c2e355c7ed4388545271702c50253b0914c65ce5fe", JIDTag(strings.Repeat("a", 256)))
	require.Equal(t, "sha256:4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c", JIDTag("é"))
	rapid.Check(t, func(t *rapid.T) {
		jid, other := rapid.String().Draw(t, "jid"), rapid.String().Draw(t, "other")
		tag := JIDTag(jid)
		require.LessOrEqual(t, len(tag), 255)
		require.Equal(t, tag, ASCII(tag), "a header can hold it")
		require.Equal(t, tag, JIDTag(tag))
		require.Equal(t, jid == other, tag == JIDTag(other))
	})
}

func TestASCII(t *testing.T) {
	require.Equal(t, "a?b?~ ??", ASCII("a\nbé~ \x7f\xff"))
	require.Equal(t, strings.Repeat("?", 255), ASCII(strings.Repeat("é", 300)))
	rapid.Check(t, func(t *rapid.T) {
		got := ASCII(rapid.String().Draw(t, "text"))
		require.LessOrEqual(t, len(got), 255)
		require.Equal(t, got, ASCII(got))
	})
}

// A time that Millrace writes is read as the same time.
func TestTimesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(0, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()).Draw(t, "micros")
		at := time.UnixMicro(micros).UTC()
		raw := DeadJob(DeadEnvelope{JID: "j", DiedAt: at}, []byte(`{"class":"A"}`))
		e, err := ParseEntry(DeadJobs, 0, raw)
		require.NoError(t, err)
		require.Equal(t, at, e.At)
	})
}

// No job is early by more than the precision of its time.
func TestTimesAreNeverEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Float64Range(-1e10, 1e11).Draw(t, "seconds")
		e, err := ParseEntry(ScheduledJobs, 0, mustMarshal(t, map[string]any{"scheduled_at": seconds, "job": map[string]any{"class": "A"}}))
		require.NoError(t, err)
		late := Seconds(e.At) - seconds
		precision := math.Nextafter(math.Abs(seconds), math.Inf(1)) - math.Abs(seconds)
		require.GreaterOrEqual(t, late, -precision)
		require.LessOrEqual(t, late, 1e-6+2*precision)
	})
}

// large returns records of megabytes. Each is hard for one kind of parser.
func large() map[string]string {
	const size = 1 << 20
	times := func(s string) string { return strings.Repeat(s, size/len(s)) }
	args := func(s string) string { return `{"scheduled_at":1,"job":{"class":"A","args":` + s + `}}` }
	return map[string]string{
		"one string":           args(`"` + times("x") + `"`),
		"backslashes":          args(`"` + times(`\\`) + `"`),
		"escaped quotes":       args(`"` + times(`\"`) + `"`),
		"backslash and quotes": args(`"` + times(`\\\"`) + `"`),
		"escapes":              args(`"` + times(`\u0041`) + `"`),
		"strings":              args(`["` + times(`","`) + `"]`),
		"numbers":              args("[" + times("1,") + "1]"),
		"a long number":        args("1" + times("0")),
		"a long fraction":      args("0." + times("1")),
		"deep":                 args(strings.Repeat(strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+",", 60) + "1"),
		"deep in turn":         args("[" + strings.Repeat(strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+",", 60) + "1]"),
		"members":              args("{" + times(`"a":1,`) + `"b":1}`),
		"members above":        `{"scheduled_at":1,` + times(`"a":1,`) + `"job":{"class":"A"}}`,
		"members in the job":   `{"scheduled_at":1,"job":{` + times(`"a":1,`) + `"class":"A"}}`,
		"escaped names":        `{"scheduled_at":1,` + times(`"\u0061":1,`) + `"job":{"class":"A"}}`,
		"a long name":          `{"scheduled_at":1,"` + times(`\\`) + `":1,"job":{"class":"A"}}`,
		"a long class":         `{"scheduled_at":1,"job":{"class":"` + times(`\ud83d\ude00`) + `"}}`,
		"a long jid":           `{"scheduled_at":1,"jid":"` + strings.Repeat("j", 2<<20) + `","job":{"class":"A"}}`,
		"tags":                 `{"scheduled_at":1,"job":{"class":"A","tags":["` + times(`","`) + `"]}}`,
		"tags that are none":   `{"scheduled_at":1,"job":{"class":"A","tags":[` + times(`1,`) + `1]}}`,
		"space":                `{"scheduled_at":1,` + times(" ") + `"job":{"class":"A"}}`,
		"space behind":         `{"scheduled_at":1,"job":{"class":"A"}}` + times("\n"),
	}
}

// No input takes more than linear time.
func TestLargeRecords(t *testing.T) {
	for name, record := range large() {
		t.Run(name, func(t *testing.T) {
			body := []byte(record)
			begun := time.Now()
			e, err := ParseEntry(ScheduledJobs, 0, body)
			if err == nil {
				_, err = e.Body(begun)
				require.NoError(t, err)
				_ = e.Item(0)
			}
			_, _ = ParseJournal(body)
			_ = CheckMetrics(body)
			require.Less(t, time.Since(begun), patience)
		})
	}
}

// A message of many small values must not take many times its size in memory: any client can send
// 16 MB.
func TestLargeArraysTakeLittleMemory(t *testing.T) {
	const size = 4 << 20
	metrics := []byte("[" + strings.Repeat("1,", size/2) + "1]")
	job := []byte(`{"class":"A","tags":[` + strings.Repeat(`"",`, size/3) + `""]}`)
	for name, read := range map[string]func(){
		"metrics": func() { require.Error(t, CheckMetrics(metrics)) },
		"tags": func() {
			j, err := ParseJob(job)
			require.NoError(t, err)
			require.Len(t, j.Tags, shared.MaxTexts)
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read()
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*size), name)
	}
}

package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

func drawContent(t *rapid.T) content {
	c := content{Size: rapid.Int64().Draw(t, "size"), jobEnd: rapid.IntRange(0, 20).Draw(t, "end"), priority: rapid.Uint8().Draw(t, "priority"),
		discards: rapid.Bool().Draw(t, "discards"), nameless: rapid.Bool().Draw(t, "nameless"), jobJID: rapid.String().Draw(t, "job's jid")}
	c.jobAt = rapid.IntRange(0, c.jobEnd).Draw(t, "begin")
	if rapid.Bool().Draw(t, "expires") {
		c.expires = time.UnixMicro(rapid.Int64Range(-1e15, 1e15).Draw(t, "at")).UTC()
	}
	if rapid.Bool().Draw(t, "inline") {
		c.Raw = rapid.SliceOfN(rapid.Byte(), max(1, c.jobEnd), 30).Draw(t, "raw")
	}
	return c
}

// An entry that is fired has what its record says, without being parsed again.
func TestFireableIsWhatRecordSays(t *testing.T) {
	job := rapid.Custom(func(t *rapid.T) string {
		all := []string{`"class":"Ab"`}
		for _, member := range []string{`"jid":"own"`, `"jid":null`, `"queue":"q"`, `"priority":7`, `"expires_at":0`, `"expires_at":1700000000.5`, `"dead":false`,
			`"retry_count":3`, `"enqueued_at":1`, `"args":[{"jid":"no"}]`} {
			name, _, _ := strings.Cut(member, ":")
			if rapid.Bool().Draw(t, member) && !slices.ContainsFunc(all, func(m string) bool { return strings.HasPrefix(m, name+":") }) {
				all = append(all, member)
			}
		}
		return "{ " + strings.Join(all, " , ") + " }"
	})
	rapid.Check(t, func(t *rapid.T) {
		r := wire.Record{Stream: rapid.SampledFrom(wire.EntryStreams).Draw(t, "stream"), Offset: 3, Time: time.Unix(9, 0).UTC()}
		body := job.Draw(t, "job")
		if r.Stream != wire.Gated {
			of := map[string]string{wire.ScheduledJobs: "scheduled_at", wire.Retries: "retry_at", wire.DeadJobs: "died_at"}[r.Stream]
			jid := rapid.SampledFrom([]string{"", `,"jid":"entry"`, `,"jid":"own"`}).Draw(t, "jid")
			body = fmt.Sprintf(`{ "%s":1700000000.25%s,"retry_count":4, "job": %s}`, of, jid, body)
		}
		r.Body = []byte(body)
		want, err := wire.EntryOf(&r)
		require.NoError(t, err)
		kept := newStored(&wire.EntryRecord{Entry: want})
		s, err := decodeStored(kept.id(), kept.encode())
		require.NoError(t, err)
		got, ok := s.Fireable()
		require.True(t, ok)
		now := time.Unix(1_800_000_000, 0)
		wantBody, err := want.Body(now)
		require.NoError(t, err)
		gotBody, err := got.Body(now)
		require.NoError(t, err)
		require.Equal(t, string(wantBody), string(gotBody))
		want.Job.Retry, want.Job.RetryCount, want.Job.Tags = 0, 0, nil
		require.Equal(t, want, got)
	})
}

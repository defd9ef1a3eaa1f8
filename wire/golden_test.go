package wire

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// vector is a record with what it means, or why it is refused. testdata/*.json also serves the
// authors of clients.
type vector struct {
	Name   string `json:"name"`
	Stream string `json:"stream"`
	Offset int64  `json:"offset"`

	// The record: as text, as base64 if it is not text, or as the parts of a large one.
	Record *string `json:"record"`
	Base64 []byte  `json:"base64"`
	Build  *build  `json:"build"`

	Want   json.RawMessage `json:"want"`
	Reason string          `json:"reason"`
}

type build struct {
	Before string `json:"before"`
	Repeat string `json:"repeat"`
	Times  int    `json:"times"`
	After  string `json:"after"`
	Close  string `json:"close"` // repeated as often as Repeat
	End    string `json:"end"`
}

func (v *vector) bytes() []byte {
	switch {
	case v.Record != nil:
		return []byte(*v.Record)
	case v.Build != nil:
		b := v.Build
		return []byte(b.Before + strings.Repeat(b.Repeat, b.Times) + b.After + strings.Repeat(b.Close, b.Times) + b.End)
	}
	return v.Base64
}

func vectors(t testing.TB, name string) []vector {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".json")
	require.NoError(t, err)
	var all []vector
	require.NoError(t, json.Unmarshal(raw, &all))
	require.NotEmpty(t, all)
	return all
}

// understood returns a job or entry in the form of the vectors.
func understood(job *Job, e *Entry) map[string]any {
	m := map[string]any{"jid": job.JID, "class": job.Class, "queue": job.Queue, "retry": job.Retry, "attempt": job.RetryCount,
		"priority": job.Priority, "dead": job.Dead, "tags": job.Tags, "expires_at": nil}
	if !job.ExpiresAt.IsZero() {
		m["expires_at"] = job.ExpiresAt
	}
	if e == nil {
		return m
	}
	m["jid"], m["job_jid"], m["attempt"], m["at"] = e.JID, job.JID, e.Attempt, e.At
	m["error_class"], m["error_message"] = e.ErrorClass, e.ErrorMessage
	body, err := e.Body(fired)
	if err != nil {
		body = []byte("error: " + err.Error())
	}
	m["body"], m["item"] = string(body), string(e.Item(e.Offset))
	return m
}

// requireUnderstood compares the members that the vector names.
func requireUnderstood(t *testing.T, v *vector, job *Job, e *Entry, err error) {
	t.Helper()
	if v.Reason != "" {
		require.EqualError(t, err, v.Reason)
		return
	}
	require.NoError(t, err)
	raw, err := json.Marshal(understood(job, e))
	require.NoError(t, err)
	var have, want map[string]any
	require.NoError(t, json.Unmarshal(raw, &have))
	require.NoError(t, json.Unmarshal(v.Want, &want))
	require.NotEmpty(t, want)
	for name := range have {
		if _, named := want[name]; !named {
			delete(have, name)
		}
	}
	require.Empty(t, cmp.Diff(want, have))
}

func TestEntryVectors(t *testing.T) {
	for _, v := range vectors(t, "entries") {
		t.Run(v.Name, func(t *testing.T) {
			body := v.bytes()
			begun := time.Now()
			e, err := ParseEntry(v.Stream, v.Offset, body)
			require.Less(t, time.Since(begun), patience)
			requireUnderstood(t, &v, &e.Job, &e, err)
			require.Equal(t, v.bytes(), body, "it was written to")
		})
	}
}

func TestJobVectors(t *testing.T) {
	for _, v := range vectors(t, "jobs") {
		t.Run(v.Name, func(t *testing.T) {
			job, err := ParseJob(v.bytes())
			requireUnderstood(t, &v, &job, nil, err)
		})
	}
}

func TestCheckVectors(t *testing.T) {
	checks := map[string]func([]byte) error{
		"heartbeats": CheckHeartbeat,
		"metrics":    CheckMetrics,
		"commands":   func(b []byte) error { _, err := ParseCommand(b); return err },
	}
	for name, check := range checks {
		for _, v := range vectors(t, name) {
			t.Run(name+"/"+v.Name, func(t *testing.T) {
				err := check(v.bytes())
				if v.Reason == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, v.Reason)
				}
			})
		}
	}
}

func TestHeartbeatVectors(t *testing.T) {
	for _, v := range vectors(t, "heartbeats") {
		if v.Want != nil {
			t.Run(v.Name, func(t *testing.T) {
				h, err := ParseHeartbeat(v.bytes())
				require.NoError(t, err)
				require.JSONEq(t, string(v.Want), string(mustMarshal(t, h)))
			})
		}
	}
}

// metricWanted is a metric record in the form of the vectors.
type metricWanted struct {
	At         time.Time `json:"at"`
	Class      string    `json:"class"`
	Queue      string    `json:"queue"`
	Status     string    `json:"status"`
	Micros     *int64    `json:"duration_us"`
	Wait       *int64    `json:"wait_us"`
	Attempt    int64     `json:"attempt"`
	JID        string    `json:"jid"`
	Worker     string    `json:"worker"`
	ErrorClass string    `json:"error_class"`
}

func micros(d time.Duration) *int64 {
	if d < 0 {
		return nil
	}
	us := d.Microseconds()
	return &us
}

func TestMetricVectors(t *testing.T) {
	for _, v := range vectors(t, "metrics") {
		if v.Want != nil {
			t.Run(v.Name, func(t *testing.T) {
				var want []metricWanted
				require.NoError(t, json.Unmarshal(v.Want, &want))
				good, bad, err := ParseMetrics(nil, v.bytes())
				require.NoError(t, err)
				have := []metricWanted{}
				for _, m := range good {
					have = append(have, metricWanted{m.At, m.Class, m.Queue, m.Status, micros(m.Duration), micros(m.Wait), m.Attempt, m.JID, m.Worker, m.ErrorClass})
				}
				require.Empty(t, cmp.Diff(want, have))
				if v.Reason != "" {
					_, reason := BadMetrics(bad)
					require.Contains(t, reason, v.Reason)
				}
			})
		}
	}
}

func TestInvalidMetricsBecomeOneRecord(t *testing.T) {
	good, bad, err := ParseMetrics(nil, []byte(`[{"timestamp":1,"job_class":"A","status":"dead"}, 1, {"job_class":2}]`))
	require.NoError(t, err)
	require.Len(t, good, 1)
	body, reason := BadMetrics(bad)
	require.Equal(t, `[1,{"job_class":2}]`, string(body))
	require.Equal(t, `metric record 1: metric record is not a JSON object; and 1 more`, reason)
}

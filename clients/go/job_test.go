package millrace

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The members that a job's owner added reach handlers and middleware unchanged.
func TestExtraFieldsOfJob(t *testing.T) {
	w := NewWorker(WorkerConfig{URL: "amqp://localhost"})
	var got []map[string]any
	w.Use(func(next Handler) Handler {
		return func(ctx context.Context, job *RawJob) error {
			got = append(got, job.Fields())
			return next(ctx, job)
		}
	})
	Handle(w, func(_ context.Context, job *Job[sendEmailArgs]) error {
		got = append(got, job.Fields())
		return nil
	}, nil)
	fields := map[string]any{"tenant": "acme", "größe": map[string]any{"a": []any{nil, true}}, "customer": json.Number("12345678901234567890")}
	_, body, err := EnqueueParams{Args: sendEmailArgs{}, Options: EnqueueOptions{
		Queue: "low", MaxAttempts: 2, Priority: 1, Tags: []string{"a"}, ExpiresAt: time.Now().Add(time.Hour), Timeout: time.Minute,
		NoDead: true, Backtrace: 1, Fields: fields,
	}}.Message(time.Now())
	require.NoError(t, err)
	require.NoError(t, w.Perform(t.Context(), body, "low").Err)
	require.Equal(t, []map[string]any{fields, fields}, got)

	job := RawJob{Raw: []byte(`{"jid":"j","class":"A","tenant":"a","tenant":"b","esc\u0061ped":1.0}`)}
	require.Equal(t, map[string]any{"tenant": "b", "escaped": json.Number("1.0")}, job.Fields())
	require.Empty(t, (&RawJob{Raw: []byte(`{"class":"A"}`)}).Fields())
}

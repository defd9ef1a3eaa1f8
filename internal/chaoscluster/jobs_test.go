package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// A broker confirms the messages that it returns. A returned job need not arrive.
func TestReturnedJobsAreNotCountedAsConfirmed(t *testing.T) {
	v := brokertest.New(t)
	j := newJobs()
	p, err := j.publisher(v.Dial(t))
	require.NoError(t, err)
	require.ErrorContains(t, p.publish(t.Context(), []entry{{"a", "q", time.Now()}, {"b", "q", time.Now()}}), "2 of 2 entries were returned")
	require.Empty(t, j.missing())

	_, err = v.Channel(t).QueueDeclare("scheduled_jobs", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, p.publish(t.Context(), []entry{{"c", "q", time.Now()}}))
	require.Equal(t, []string{"c"}, j.missing())
}

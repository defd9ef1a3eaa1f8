package broker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
)

func TestRetention(t *testing.T) {
	q := broker.QueueInfo{MaxLengthBytes: 5, Definition: map[string]any{"max-age": "7D"}, Arguments: map[string]any{"x-max-age": "1h"}}
	require.Equal(t, broker.Retention{Age: time.Hour, Bytes: 5}, q.Retention())
	for text, want := range map[string]time.Duration{"30s": 30 * time.Second, "5m": 5 * time.Minute, "2M": 60 * 24 * time.Hour,
		"1Y": 365 * 24 * time.Hour, "": 0, "x": 0, "-1D": 0, "3w": 0} {
		q := broker.QueueInfo{Definition: map[string]any{"max-age": text}}
		require.Equal(t, want, q.Retention().Age, text)
	}
}

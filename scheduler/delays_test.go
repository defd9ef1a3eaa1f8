package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelays(t *testing.T) {
	var d, sum Delays
	for _, took := range []time.Duration{-time.Second, time.Millisecond, time.Millisecond + 1, time.Minute, time.Minute + 1} {
		d.note(took)
	}
	sum.add(&d)
	sum.add(&d)
	require.Equal(t, 4*time.Minute+4*time.Millisecond+4, sum.Sum)
	require.EqualValues(t, []int64{4, 2, 2, 2}, []int64{sum.Counts[0], sum.Counts[1], sum.Counts[13], sum.Counts[14]})
}

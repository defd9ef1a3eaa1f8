package metrics_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

// BenchmarkFold folds records as a reader delivers them, one a message.
func BenchmarkFold(b *testing.B) {
	const batch = 1000
	for _, pairs := range []int{20, 1000} {
		b.Run(fmt.Sprint(pairs, " pairs"), func(b *testing.B) {
			s, r := newSidecar(b), rand.New(rand.NewPCG(1, 1))
			var records []wire.Record
			for i := range batch {
				at := now.Add(-time.Hour + time.Duration(i)*time.Millisecond)
				more := fmt.Sprintf(`,"type":"job_metric","worker_identity":"worker-01:12345:production","jid":"b4a577edbccf1d805744efa%03d","wait_ms":%d,"attempt":1`, i, r.IntN(500))
				body := metric(at, fmt.Sprint("SendWelcomeMail", i%pairs), "default", "success", time.Duration(r.ExpFloat64()*float64(time.Second)), more)
				records = append(records, wire.Record{Stream: wire.JobMetrics, Body: []byte(body), Time: now})
			}
			var offset int64
			before := used(b)
			b.ResetTimer()
			for range b.N {
				for i := range records {
					records[i].Offset = offset
					offset++
				}
				s.read(wire.JobMetrics, records...)
				s.now = s.now.Add(batch * time.Second / 100_000)
			}
			b.ReportMetric(float64((used(b)-before).Microseconds())/float64(b.N)/batch, "cpu-µs/record")
		})
	}
}

// BenchmarkAsk asks for six hours of 50 pairs by the minute.
func BenchmarkAsk(b *testing.B) {
	s, r := newSidecar(b), rand.New(rand.NewPCG(1, 1))
	var all stream
	for i := range 20_000 {
		all.add(metric(now.Add(-time.Duration(i)*time.Second), fmt.Sprint("C", r.IntN(10)), fmt.Sprint("q", r.IntN(5)), "success", time.Duration(r.ExpFloat64()*float64(time.Second)), ""))
	}
	s.read(wire.JobMetrics, all.records...)
	b.ResetTimer()
	for range b.N {
		_, err := s.Ask(metrics.Query{From: now.Add(-6 * time.Hour), To: now})
		require.NoError(b, err)
	}
}

// BenchmarkThroughput asks for half an hour of 600 pairs in steps of two minutes.
func BenchmarkThroughput(b *testing.B) {
	s, r := newSidecar(b), rand.New(rand.NewPCG(1, 1))
	var all stream
	for i := range 60_000 {
		all.add(metric(now.Add(-time.Duration(i)*30*time.Millisecond), fmt.Sprint("C", i%2), fmt.Sprint("q", r.IntN(300)), "success", time.Duration(r.ExpFloat64()*float64(time.Second)), ""))
	}
	s.read(wire.JobMetrics, all.records...)
	s.now = s.now.Add(2 * time.Second)
	s.read(wire.JobMetrics, wire.Record{Stream: wire.JobMetrics, Offset: all.next, Body: []byte("{}"), Time: now}) // so that everything is written
	q := metrics.Query{From: now.Add(-30 * time.Minute), To: now, Step: 2 * time.Minute}
	b.Run("counts", func(b *testing.B) {
		for range b.N {
			_, err := s.Throughput(q)
			require.NoError(b, err)
		}
	})
	b.Run("all", func(b *testing.B) {
		for range b.N {
			_, err := s.Ask(q)
			require.NoError(b, err)
		}
	})
}

// used returns the CPU time of this process. It hardly depends on the load of the machine.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

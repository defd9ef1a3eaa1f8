package metrics

import (
	"fmt"
	"math"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

// accuracy is how far a percentile may be from the exact one, as a part of it.
const accuracy = 0.01

// buckets maps values to bins. All sketches must have the same mapping, or they cannot be merged.
// So it must never change.
var buckets = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(accuracy)
	if err != nil { // only for an accuracy that makes no sense
		panic(err)
	}
	return m
}()

// sketch is the distribution of spans, in microseconds; nil is empty.
type sketch struct{ *ddsketch.DDSketch }

func newSketch() *sketch {
	return &sketch{ddsketch.NewDDSketchFromStoreProvider(buckets, store.BufferedPaginatedStoreConstructor)}
}

func (s *sketch) add(d time.Duration) {
	_ = s.Add(float64(d.Microseconds())) // it refuses only what no span can be
}

// mergeSketch adds from to into, which may be nil.
func mergeSketch(into, from *sketch) *sketch {
	if from == nil {
		return into
	}
	if into == nil {
		into = newSketch()
	}
	_ = into.MergeWith(from.DDSketch) // all have the same mapping
	return into
}

func (s *sketch) encode() []byte {
	if s == nil {
		return nil
	}
	var b []byte
	s.Encode(&b, true)
	return b
}

func decodeSketch(b []byte) (s *sketch, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	defer func() { // it trusts its bytes
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("metrics: sketch is damaged: %v", r)
		}
	}()
	decoded, err := ddsketch.DecodeDDSketch(b, store.BufferedPaginatedStoreConstructor, buckets)
	if err != nil {
		return nil, fmt.Errorf("metrics: sketch is damaged: %w", err)
	}
	return &sketch{decoded}, nil
}

// Spread is the distribution of spans of time.
type Spread struct {
	Count         int64
	Sum           time.Duration // within 1 %
	P50, P95, P99 time.Duration
	Buckets       []int64 // how many lie in each of Bounds, and beyond the last
}

// Bounds are the upper ends of a spread's buckets.
var Bounds = []time.Duration{5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, time.Second, 2500 * ms, 5 * time.Second, 10 * time.Second,
	30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

const ms = time.Millisecond

func (s *sketch) spread() Spread {
	out := Spread{Buckets: make([]int64, len(Bounds)+1)}
	if s == nil || s.IsEmpty() {
		return out
	}
	out.Count = int64(s.GetCount())
	at, err := s.GetValuesAtQuantiles([]float64{.5, .95, .99})
	if err == nil {
		out.P50, out.P95, out.P99 = micros(at[0]), micros(at[1]), micros(at[2])
	}
	var sum float64
	s.ForEach(func(value, count float64) bool {
		i := 0
		for i < len(Bounds) && micros(value) > Bounds[i] {
			i++
		}
		out.Buckets[i] += int64(count)
		sum += value * count
		return false
	})
	out.Sum = micros(sum)
	return out
}

func micros(v float64) time.Duration {
	return time.Duration(min(v*float64(time.Microsecond), math.MaxInt64/2))
}

package wire

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRangesContainWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOf(rapid.Int64Range(1, 40)).Draw(t, "numbers")
		var ranges Ranges
		for _, n := range numbers {
			ranges = ranges.Add(n)
		}
		var held []int64
		for i, r := range ranges {
			require.LessOrEqual(t, r.First, r.Last)
			require.True(t, i == 0 || ranges[i-1].Last+1 < r.First, "a gap lies between two ranges: %v", ranges)
			for n := r.First; n <= r.Last; n++ {
				held = append(held, n)
			}
		}
		slices.Sort(numbers)
		require.Equal(t, slices.Compact(numbers), append([]int64{}, held...))
		for n := range int64(42) {
			require.Equal(t, slices.Contains(held, n), ranges.Has(n), n)
		}

		read, err := ParseRanges(ranges.String())
		require.NoError(t, err)
		require.Equal(t, ranges, read)
	})
}

func TestRangesInJSON(t *testing.T) {
	raw, err := json.Marshal(Confirmed{Epoch: 3, Through: 9, Above: Ranges{{11, 11}, {13, 20}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"epoch":3,"through":9,"above":"11,13-20"}`, string(raw))
	var read Confirmed
	require.NoError(t, json.Unmarshal(raw, &read))
	require.Equal(t, Ranges{{11, 11}, {13, 20}}, read.Above)
	raw, err = json.Marshal(Confirmed{Epoch: 3, Through: 9})
	require.NoError(t, err)
	require.JSONEq(t, `{"epoch":3,"through":9}`, string(raw))
}

func TestMalformedRanges(t *testing.T) {
	for _, text := range []string{"x", "1-", "-1", "0", "5-3", "1,2", "5,1", "1-4,4-6", "1,,3", "1,"} {
		_, err := ParseRanges(text)
		require.Error(t, err, "%q", text)
		require.Empty(t, ConfirmedBy(1, map[string]any{HeaderConfirmed: int64(1), HeaderAbove: text}).Above, "%q", text)
	}
}

package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Confirmed says which fires and burials of an epoch are confirmed. All others in the journal are
// in doubt.
type Confirmed struct {
	Epoch   int64  `json:"epoch"`
	Through int64  `json:"through"`         // all numbers up to this one
	Above   Ranges `json:"above,omitempty"` // and these
}

// ConfirmedBy returns what the headers of a journal record say about confirms.
func ConfirmedBy(epoch int64, headers map[string]any) Confirmed {
	k := Confirmed{Epoch: epoch, Through: HeaderInt(headers, HeaderConfirmed)}
	if text, ok := headers[HeaderAbove].(string); ok {
		k.Above, _ = ParseRanges(text) // an error leaves more in doubt, which loses nothing
	}
	return k
}

// Range is the numbers from First to Last.
type Range struct{ First, Last int64 }

// Ranges are sorted ranges of numbers with gaps between them.
type Ranges []Range

// Has reports whether a number is in one of the ranges.
func (r Ranges) Has(n int64) bool {
	_, found := r.search(n)
	return found
}

func (r Ranges) search(n int64) (at int, found bool) {
	return slices.BinarySearchFunc(r, n, func(x Range, n int64) int {
		switch {
		case x.Last < n:
			return -1
		case x.First > n:
			return 1
		}
		return 0
	})
}

// Add returns the ranges with one more number. It may modify r.
func (r Ranges) Add(n int64) Ranges {
	at, found := r.search(n)
	if found {
		return r
	}
	joinsLower := at > 0 && r[at-1].Last == n-1
	joinsUpper := at < len(r) && r[at].First == n+1
	switch {
	case joinsLower && joinsUpper:
		r[at-1].Last = r[at].Last
		return slices.Delete(r, at, at+1)
	case joinsLower:
		r[at-1].Last = n
		return r
	case joinsUpper:
		r[at].First = n
		return r
	}
	return slices.Insert(r, at, Range{n, n})
}

// String returns the ranges as in the header millrace-above: "7,1126-5193".
func (r Ranges) String() string {
	var b strings.Builder
	for i, x := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(x.First, 10))
		if x.Last > x.First {
			b.WriteByte('-')
			b.WriteString(strconv.FormatInt(x.Last, 10))
		}
	}
	return b.String()
}

// ParseRanges parses the output of String.
func ParseRanges(text string) (Ranges, error) {
	var all Ranges
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRun := strings.Cut(part, "-")
		if !isRun {
			last = first
		}
		x, err := parseRange(first, last)
		if err != nil || len(all) > 0 && x.First <= all[len(all)-1].Last+1 {
			return nil, fmt.Errorf("ranges of numbers: %q is not one, or not in order", part)
		}
		all = append(all, x)
	}
	return all, nil
}

func parseRange(first, last string) (x Range, err error) {
	if x.First, err = strconv.ParseInt(first, 10, 64); err != nil {
		return x, err
	}
	if x.Last, err = strconv.ParseInt(last, 10, 64); err != nil {
		return x, err
	}
	if x.First < 1 || x.Last < x.First {
		return x, fmt.Errorf("from %d to %d", x.First, x.Last)
	}
	return x, nil
}

// MarshalText writes ranges in JSON as they are in headers.
func (r Ranges) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (r *Ranges) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRanges(string(text))
	return err
}

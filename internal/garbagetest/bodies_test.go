package garbagetest

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// bodies returns all unusual records from the tests of package wire, and mutants of them.
func bodies(t *testing.T, r *rand.Rand) [][]byte {
	all := slices.Concat(vectors(t), corpus(t))
	for range 150 {
		all = append(all, mutate(r, all[r.IntN(len(all))]))
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

const wireData = "../../wire/testdata/"

// vectors returns the small golden vectors.
func vectors(t *testing.T) (all [][]byte) {
	for _, name := range []string{"entries", "jobs", "heartbeats", "metrics", "commands"} {
		raw, err := os.ReadFile(wireData + name + ".json")
		require.NoError(t, err)
		var list []struct {
			Record *string
			Base64 []byte
		}
		require.NoError(t, json.Unmarshal(raw, &list))
		for _, v := range list {
			switch {
			case v.Record != nil:
				all = append(all, []byte(*v.Record))
			case v.Base64 != nil:
				all = append(all, v.Base64)
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// corpus returns the inputs that fuzzing has found to be worth keeping.
func corpus(t *testing.T) (all [][]byte) {
	files, err := filepath.Glob(wireData + "fuzz/*/*")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range strings.Split(string(raw), "\n") {
			if quoted, ok := strings.CutPrefix(line, "[]byte("); ok {
				text, err := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
				require.NoError(t, err)
				all = append(all, []byte(text))
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

var fragments = []string{`"`, `\`, `{`, `}`, `[`, `]`, `:`, `,`, `null`, `1e400`, `"j\u0069d":1,`, `\ud800`, "\xff", "\x00", `"type":"barrier"`, `"millrace":{},`}

func mutate(r *rand.Rand, body []byte) []byte {
	b := slices.Clone(body)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(b) + 1)
		to := min(len(b), at+r.IntN(10))
		switch r.IntN(4) {
		case 0:
			b = slices.Delete(b, at, to)
		case 1:
			b = slices.Replace(b, at, to, []byte(fragments[r.IntN(len(fragments))])...)
		case 2:
			b = slices.Insert(b, at, slices.Clone(b[at:to])...)
		case 3:
			if at < len(b) {
				b[at] ^= 1 << r.IntN(8)
			}
		}
	}
	return b
}

// refused reports whether a record from a client is bad.
func refused(stream string, body []byte, replaces bool) bool {
	switch stream {
	case wire.Journal:
		return true
	case wire.Heartbeats:
		return wire.CheckHeartbeat(body) != nil
	case wire.JobMetrics:
		return wire.CheckMetrics(body) != nil
	}
	_, err := wire.ParseEntry(stream, 0, body)
	return replaces || err != nil
}

package wire

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTextMatchesAnyJSONSpelling(t *testing.T) {
	require.Equal(t, [][]byte{[]byte("ann")}, Spellings("Ann"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 20, -1).Draw(t, "text")
		for _, written := range [][]byte{escape(text, false), escape(text, true), escapeBeyondASCII(escape(text, false))} {
			written = LowerASCII(bytes.Clone(written))
			require.True(t, slices.ContainsFunc(Spellings(text), func(s []byte) bool { return bytes.Contains(written, s) }))
		}
	})
}

func TestCounted(t *testing.T) {
	require.Equal(t, []string{"0 jobs", "1 job", "2 jobs"}, []string{Counted(0, "job"), Counted(1, "job"), Counted(2, "job")})
}

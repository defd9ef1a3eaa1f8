package flags

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"on-gap", "on-gap", 0}} {
		require.Equal(t, test.want, distance(test.a, test.b), "%s → %s", test.a, test.b)
	}
	require.Equal(t, "log-level", nearest("loglevel", []string{"log-format", "log-level", "on-gap"}))
	require.Empty(t, nearest("x", nil))
}

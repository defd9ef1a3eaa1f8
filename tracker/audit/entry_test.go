package audit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A truncated entry causes an error.
func TestDamagedEntries(t *testing.T) {
	for _, list := range lists {
		_, err := decode(keyEntry(list, 1), []byte{1})
		require.ErrorIs(t, err, ErrDamaged)
	}
	_, err := decode(keyEntry(single, 1), make([]byte, 9))
	require.ErrorIs(t, err, ErrDamaged)
}

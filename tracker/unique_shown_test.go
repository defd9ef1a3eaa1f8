package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// What TakeFreed returns belongs to its caller. The view writes what comes next elsewhere.
func TestTakenKeysDoNotChange(t *testing.T) {
	var s shownUnique
	s.FollowKeys(true)
	none := s.TakeFreed()
	s.showFreed(map[wire.UniqueID]bool{"a": true})
	require.Empty(t, none)
	taken := s.TakeFreed()
	require.Len(t, taken, 1)
	s.showFreed(map[wire.UniqueID]bool{"b": true})
	require.Len(t, taken, 1)
}

package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// What TakeGroups returns belongs to its caller. The view writes what comes next elsewhere.
func TestTakenGroupsDoNotChange(t *testing.T) {
	var f followed
	f.FollowGroups(true)
	none, _ := f.TakeGroups()
	f.showGroups(map[wire.Group]DueKey{{Key: "a"}: {}}, true)
	require.Empty(t, none)
	taken, all := f.TakeGroups()
	require.Len(t, taken, 1)
	require.True(t, all)
	f.showGroups(map[wire.Group]DueKey{{Key: "b"}: {}}, false)
	require.Len(t, taken, 1)
}

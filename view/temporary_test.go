package view

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func temporary(t *testing.T) *Store {
	t.Helper()
	s, err := OpenTemporary(Config{Identity: "x", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return s
}

func TestTemporaryStoreLeavesNoFiles(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TMPDIR", root)
	s := temporary(t)
	put(t, s, "a", "1")
	other := temporary(t)
	_, ok := has(t, other, "a")
	require.False(t, ok, "each store has a folder of its own")
	require.NoError(t, other.Close())
	require.NoError(t, s.Close())
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFoldersOfDeadProcessesAreRemoved(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TMPDIR", root)
	long := time.Now().Add(-2 * beingMade)
	folder := func(name string, at time.Time) string {
		dir := filepath.Join(root, name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "000001.sst"), nil, 0o600))
		require.NoError(t, os.Chtimes(dir, at, at))
		return dir
	}
	dead, fresh, foreign := folder(temporaryPrefix+"1", long), folder(temporaryPrefix+"2", time.Now()), folder("other", long)
	live := temporary(t)
	require.NoError(t, os.Chtimes(live.temporary, long, long))
	require.NoError(t, temporary(t).Close())
	require.NoDirExists(t, dead)
	require.DirExists(t, fresh, "another process may be about to open it")
	require.DirExists(t, foreign)
	require.DirExists(t, live.temporary, "the folder is in use")
	require.NoError(t, live.Close())
}

func TestTemporaryStoreWithoutFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	s := temporary(t)
	put(t, s, "a", "1")
	require.Empty(t, s.temporary)
	require.NoError(t, s.Close())
}

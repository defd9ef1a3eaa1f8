package view

import (
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	temporaryPrefix = "millrace-view-"

	// beingMade is the age at which a directory counts as left behind. A process may be about to
	// open a newer one.
	beingMade = time.Minute
)

// OpenTemporary opens an empty store in a new temporary directory. Close removes the directory. If
// the process is killed, the next process that starts removes it. If no directory can be created,
// the store is in memory, and needs several times as much of it.
func OpenTemporary(cfg Config) (*Store, error) {
	sweep(os.TempDir(), time.Now())
	dir, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		cfg.Log.Info("view: is kept in memory: no temporary folder can be made", "error", err)
		cfg.Dir = ""
		return Open(cfg)
	}
	cfg.Dir = dir
	s, err := Open(cfg)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s.temporary = dir
	return s, nil
}

// sweep removes the directories of killed processes. A directory that cannot be removed belongs to
// another user, or is in use.
func sweep(root string, now time.Time) {
	left, err := filepath.Glob(filepath.Join(root, temporaryPrefix+"*"))
	if err != nil {
		return // the pattern is a constant
	}
	for _, dir := range left {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || now.Sub(info.ModTime()) < beingMade {
			continue
		}
		lock, err := pebble.LockDirectory(dir, vfs.Default)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}
}

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

	// beingMade is how old a folder must be to be taken for one that was left behind: somebody may be about to open a newer one.
	beingMade = time.Minute
)

// OpenTemporary opens an empty store in a new folder among the system's temporary files. The folder goes when the store is closed; one that a
// killed process left behind goes when the next one starts. Where no such folder can be made the store is in memory, where it takes
// several times as much.
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

// sweep removes what killed processes left behind. What cannot be removed is another user's, or in use.
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

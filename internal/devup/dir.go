//go:build unix

package devup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// openDir opens and locks the folder that stays from one start to the next.
func openDir(fresh bool) (dir string, unlock func(), err error) {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", nil, fmt.Errorf("no place for data: set XDG_STATE_HOME: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	dir = filepath.Join(state, "millrace", "up")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", nil, err
	}
	unlock = func() { _ = lock.Close() }
	if fresh {
		err = errors.Join(os.RemoveAll(filepath.Join(dir, "broker")), os.RemoveAll(filepath.Join(dir, "view")))
	}
	if err != nil {
		unlock()
	}
	return dir, unlock, err
}

// lockFile takes a lock that ends with the process at the latest.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("another `millrace up` is using %s: end that one first", filepath.Dir(path))
	}
	return nil, errors.Join(err, f.Close())
}

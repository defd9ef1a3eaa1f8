//go:build unix

package devup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
)

// supported reports that this system can run a private broker, if one is installed.
func supported() error { return nil }

// ownGroup lets a program run in a process group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

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
	if errors.Is(err, errTaken) {
		err = fmt.Errorf("another `millrace up` is using %s: end that one first", dir)
	}
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

// errTaken is returned by lockFile when another process has the lock.
var errTaken = errors.New("the lock is taken")

// lockFile takes a lock that ends with the process at the latest.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errTaken
	}
	return nil, errors.Join(err, f.Close())
}

// lockPorts waits until no other `millrace up` of this user is between the choice of its ports and
// the moment in which its broker listens on them.
func lockPorts(ctx context.Context) (unlock func(), err error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("millrace-up-%d.lock", os.Getuid()))
	for {
		f, err := lockFile(path)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, errTaken) {
			return nil, err
		}
		if err := pause.For(ctx, lockEvery); err != nil {
			return nil, err
		}
	}
}

// lockEvery is how often lockPorts tries to take the lock.
const lockEvery = 100 * time.Millisecond

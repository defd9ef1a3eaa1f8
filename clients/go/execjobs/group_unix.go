//go:build unix

package execjobs

import (
	"os"
	"syscall"
)

// endGroup asks a command, and the processes that it has started, to end.
func endGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGTERM) }

// killGroup kills a command, and the processes that it has started.
func killGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGKILL) }

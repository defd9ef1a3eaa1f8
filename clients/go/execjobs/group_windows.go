package execjobs

import (
	"os"
	"syscall"
)

// ownGroup keeps Ctrl+C from a command: the worker decides when it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// endGroup ends a command at once: Windows has no signal that asks it to. What the command has started runs on.
func endGroup(leader *os.Process) error { return leader.Kill() }

func killGroup(leader *os.Process) error { return leader.Kill() }

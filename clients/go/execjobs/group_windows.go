package execjobs

import (
	"os"
	"syscall"
)

// ownGroup keeps Ctrl+C from a command, because the worker decides when it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// endGroup kills a command, because Windows has no signal that asks it to end. The processes that
// the command has started continue.
func endGroup(leader *os.Process) error { return leader.Kill() }

func killGroup(leader *os.Process) error { return leader.Kill() }

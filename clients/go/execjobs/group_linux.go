package execjobs

import "syscall"

// ownGroup gives a command its own process group, and makes it die with the worker.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

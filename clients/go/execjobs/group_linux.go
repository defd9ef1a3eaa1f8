package execjobs

import "syscall"

// ownGroup gives a command a process group, and lets it die with the worker.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

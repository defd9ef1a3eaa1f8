package sidecar

import "syscall"

// attributes makes the kernel kill the process when this process dies. The process gets its own
// process group, so that an interrupt from the terminal reaches only this process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

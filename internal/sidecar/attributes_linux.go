package sidecar

import "syscall"

// attributes: killed when we die, and in a process group of its own, so that an interrupt typed at our terminal is for us alone.
func attributes(traced bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Ptrace: traced}
}

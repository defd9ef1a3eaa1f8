//go:build unix && !linux

package execjobs

import "syscall"

// ownGroup gives a command a process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

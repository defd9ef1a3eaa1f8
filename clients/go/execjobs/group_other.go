//go:build unix && !linux

package execjobs

import "syscall"

// ownGroup gives a command its own process group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

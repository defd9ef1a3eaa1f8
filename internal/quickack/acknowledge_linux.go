package quickack

import "syscall"

// acknowledge sends the acknowledgement that is due. The kernel forgets the option soon, so it is
// set after each read.
func acknowledge(fd uintptr) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
}

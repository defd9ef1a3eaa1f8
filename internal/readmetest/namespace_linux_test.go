package readmetest

import (
	"net"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// namespace runs programs in a network of their own, where each port is free, and nothing but that network can be reached. Where it
// cannot be made, they run in the machine's network.
type namespace struct{ calls chan func() }

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{calls: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		err := syscall.Unshare(syscall.CLONE_NEWNET)
		if err == nil {
			err = loopbackUp()
		}
		ready <- err
		for call := range n.calls {
			call()
		}
	}()
	t.Cleanup(func() { close(n.calls) })
	if err := <-ready; err != nil { // not root, or in a container: then the machine's own ports have to be free
		for _, port := range []string{"5672", "15672", "15680"} {
			listener, free := net.Listen("tcp", "127.0.0.1:"+port)
			require.NoError(t, free, "a network of its own takes root (%v), and on this machine's a port is in use", err)
			require.NoError(t, listener.Close())
		}
	}
	return n
}

// run starts a program with the function that it is given, in the namespace.
func (n *namespace) run(begin func() error) error {
	began := make(chan error, 1)
	n.calls <- func() { began <- begin() } // a program is in the network of the thread that starts it
	return <-began
}

func (n *namespace) start(t *testing.T, cmd *exec.Cmd) *output {
	t.Helper()
	return startWith(t, cmd, func() error { return n.run(cmd.Start) })
}

// loopbackUp brings up the interface lo of the thread's network.
func loopbackUp() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(socket) }()
	request := struct { // ifreq
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP}
	copy(request.name[:], "lo")
	if _, _, number := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); number != 0 {
		return number
	}
	return nil
}

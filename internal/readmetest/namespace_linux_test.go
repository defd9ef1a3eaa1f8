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

// namespace runs programs in a network of their own, in which every port is free and nothing else
// can be reached. If it cannot be created, they run in the machine's network.
type namespace struct{ calls chan func() }

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{calls: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
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
	// Without root, or in a container, the machine's own ports must be free.
	if err := <-ready; err != nil {
		for _, port := range []string{"5672", "15672", "15680"} {
			listener, free := net.Listen("tcp", "127.0.0.1:"+port)
			require.NoError(t, free, "a network of its own takes root (%v), and on this machine's a port is in use", err)
			require.NoError(t, listener.Close())
		}
	}
	return n
}

// run calls begin, which starts a program, in the namespace.
func (n *namespace) run(begin func() error) error {
	began := make(chan error, 1)
	// A program is in the network of the thread that starts it.
	n.calls <- func() { began <- begin() }
	return <-began
}

func (n *namespace) start(t *testing.T, cmd *exec.Cmd) *output {
	t.Helper()
	return startWith(t, cmd, func() error { return n.run(cmd.Start) })
}

// loopbackUp enables the interface lo of the thread's network.
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

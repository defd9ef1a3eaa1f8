//go:build unix

package localbroker

import (
	"errors"
	"syscall"
)

// Freeze stops the node until Thaw (SIGSTOP). Its connections stay open.
func (b *Broker) Freeze() error { return b.signal(syscall.SIGSTOP) }

// Thaw lets a frozen node continue.
func (b *Broker) Thaw() error { return b.signal(syscall.SIGCONT) }

func (b *Broker) signal(s syscall.Signal) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.node.alive() {
		return errors.New("localbroker: the node is not running")
	}
	return b.node.signal(s)
}

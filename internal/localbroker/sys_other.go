//go:build !linux

package localbroker

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// Elsewhere the package only has to compile: nothing there kills children with their parent.

func childAttributes() *syscall.SysProcAttr { return nil }

func lockDir(context.Context, string) (*os.File, error) {
	return nil, errors.New("localbroker: a private broker needs Linux: start a broker and give its URL instead")
}

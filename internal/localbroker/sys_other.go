//go:build !linux

package localbroker

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// On other systems the package only has to compile: they cannot kill children with their parent.

func childAttributes() *syscall.SysProcAttr { return nil }

func lockDir(context.Context, string) (*os.File, error) {
	return nil, errors.New("localbroker: a private broker needs Linux: start a broker and give its URL instead")
}

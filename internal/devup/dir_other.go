//go:build !unix

package devup

import (
	"context"
	"errors"
	"syscall"
)

// On other systems the package only has to compile: Run stops with this error.

var errNoPrivateBroker = errors.New("`millrace up` needs Linux: start a broker and run millrace serve with its URL instead")

func supported() error { return errNoPrivateBroker }

func openDir(bool) (string, func(), error) { return "", nil, errNoPrivateBroker }

func ownGroup() *syscall.SysProcAttr { return nil }

func lockPorts(context.Context) (func(), error) { return nil, errNoPrivateBroker }

//go:build unix

package millrace

import (
	"os"
	"syscall"
)

// quietSignals make a worker quiet.
var quietSignals = []os.Signal{syscall.SIGTSTP}

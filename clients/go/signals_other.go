//go:build !unix

package millrace

import "os"

// quietSignals make a worker quiet. This system has none.
var quietSignals []os.Signal

//go:build !unix

package millrace

import "os"

// quietSignals make a worker quiet: there are none here.
var quietSignals []os.Signal

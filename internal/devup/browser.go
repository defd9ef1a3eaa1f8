package devup

import (
	"context"
	"os/exec"
	"runtime"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// openBrowser opens an address in the user's browser, and says so if it cannot. It does not wait
// for the program, which on some systems is the browser itself. Ctrl-C does not end it.
func openBrowser(live *output.Live, address string) {
	cmd := exec.CommandContext(context.Background(), opener(), address)
	cmd.SysProcAttr = ownGroup()
	go func() {
		if err := cmd.Run(); err != nil {
			live.Printf("Cannot open the web UI (%s: %v). Open %s in a browser.\n", opener(), err, live.Address(address))
		}
	}()
}

// opener is the program that opens addresses.
func opener() string {
	if runtime.GOOS == "darwin" {
		return "open"
	}
	return "xdg-open"
}

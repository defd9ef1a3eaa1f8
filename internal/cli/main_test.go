package cli

import (
	"context"
	"io"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	clitest.Init(execute)
	brokertest.Main(m)
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return Program{Root: func() any { return &Commands{} }, Vars: kong.Vars{"version": "test"}}.Execute(ctx, args, stdout, stderr)
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

// millrace runs a command line.
func millrace(t *testing.T, args ...string) result {
	t.Helper()
	code, out, err := clitest.Run(t, execute, args...)
	return result{code, out, err}
}

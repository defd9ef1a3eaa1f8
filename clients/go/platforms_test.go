package millrace

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompilesForWindows: producers and workers run there too.
func TestCompilesForWindows(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "build", ".", "./execjobs", "./millracetest")
	cmd.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

//go:build plugin

package plugintest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBuildIsReproducible builds the plugin twice, with another umask and at another time.
func TestBuildIsReproducible(t *testing.T) {
	build := func(umask string) (name string, file []byte) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "umask "+umask+" && exec ../../scripts/plugin.sh \"$0\"", t.TempDir())
		cmd.Env = append(os.Environ(), "VERSION=v1.2.3-4-gabc", "SOURCE_DATE_EPOCH=1700000000")
		out, err := cmd.Output()
		require.NoError(t, err)
		path := strings.TrimSpace(string(out))
		file, err = os.ReadFile(path)
		require.NoError(t, err)
		return filepath.Base(path), file
	}
	name, first := build("022")
	require.Equal(t, "rabbitmq_millrace-1.2.3.ez", name)
	_, second := build("077")
	require.Equal(t, first, second)
}

package readmetest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The JavaScript client does what its README says about handlers that block.
func TestJavaScriptHandlerBlocks(t *testing.T) {
	s := serve(t)
	prepare(t, "clients/javascript/install")
	out, err := s.command(t, "node", filepath.Join(root, "clients", "javascript", "test", "programs", "blocks.mjs")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "ran once")
}

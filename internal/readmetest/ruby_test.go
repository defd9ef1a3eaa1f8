package readmetest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRubySurvives holds the Ruby client to what its README says of handlers that end in the worst of ways, and of headers.
func TestRubySurvives(t *testing.T) {
	t.Parallel()
	s := serve(t)
	client := filepath.Join(root, "clients", "ruby")
	out, err := s.command(t, "ruby", "-I", filepath.Join(client, "lib"), filepath.Join(client, "test", "programs", "survives.rb")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "survived")
}

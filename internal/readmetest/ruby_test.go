package readmetest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The Ruby client does what its README says about handlers that end in unusual ways, and about
// headers.
func TestRubySurvives(t *testing.T) {
	t.Parallel()
	s := serve(t)
	client := filepath.Join(root, "clients", "ruby")
	out, err := s.command(t, "ruby", "-I", filepath.Join(client, "lib"), filepath.Join(client, "test", "programs", "survives.rb")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "survived")
}

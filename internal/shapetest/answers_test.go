package shapetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Package httpapi/answer has the types of the API's answers, and the commands declare none again.
// The JSON of enqueue.go is the record of a job that the command publishes, and that of
// definitions.go is the file that it writes and reads.
func TestCommandsDeclareNoAnswers(t *testing.T) {
	named := regexp.MustCompile(`json:"\w`)
	for _, folder := range []string{"internal/apiclient", "internal/cli", "internal/doctor", "internal/sidecar"} {
		paths, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			if name := filepath.Base(path); name == "enqueue.go" || name == "definitions.go" || strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.False(t, named.Match(text), "%s declares members of JSON: use the types in httpapi/answer", path)
		}
	}
}

package readmetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goFiles parses the Go files of a directory, except tests.
func goFiles(t *testing.T, places *token.FileSet, folder string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(places, path, nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	return files
}

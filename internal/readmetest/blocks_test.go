package readmetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the root directory of the repository.
var root = must(filepath.Abs(filepath.Join("..", "..")))

var (
	fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	named = regexp.MustCompile(`^(\w+) file=(\S+)$`)
)

// readmeBlocks returns the blocks of a page that name a file. Only in the README of a client, and
// among the commands of docs/api-access.md, may a block have no name.
func readmeBlocks(t *testing.T, path string) map[string]string {
	t.Helper()
	blocks := map[string]string{}
	for _, found := range fence.FindAllStringSubmatch(document(t, path), -1) {
		info := named.FindStringSubmatch(found[1])
		if info == nil && (strings.HasPrefix(path, "clients/") || path == "docs/api-access.md") {
			continue // TestFragments, TestCommandsInReadmes, TestLogsInReadmes and TestHints check it
		}
		require.NotNil(t, info, "a block that no test runs: %q", found[1])
		require.NotContains(t, blocks, info[2])
		blocks[info[2]] = found[2]
	}
	return blocks
}

// commands returns the lines of a shell block, without comments.
func commands(block string) []string {
	var lines []string
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, " # ")
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

// documents returns all Markdown files of the repository, by their paths in it.
func documents(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "bench/*.md", "clients/conformance/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range found {
			paths = append(paths, must(filepath.Rel(root, path)))
		}
	}
	require.Greater(t, len(paths), 8)
	return paths
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

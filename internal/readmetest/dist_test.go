//go:build linux

package readmetest

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dist.sh builds the archives for installations without a compiler; here only for this system. A
// copy of the sources that git does not know gives the same bytes. `make test-packages` tests the
// archives for other systems, and the packages that are made from them.
func TestDist(t *testing.T) {
	t.Parallel()
	folder := dist(t, root)
	sums := read(t, folder, "SHA256SUMS")
	copied := t.TempDir()
	checkout(t, copied)
	require.Equal(t, sums, read(t, dist(t, copied), "SHA256SUMS"))
	tool(t, folder, nil, "sha256sum", "--check", "--strict", "SHA256SUMS")

	name := "millrace_1.2.3_linux_" + runtime.GOARCH
	require.Contains(t, sums, "  "+name+".tar.gz\n")
	tool(t, folder, nil, "tar", "xf", name+".tar.gz")
	tree := filepath.Join(folder, name)
	require.Contains(t, tool(t, tree, nil, "./millrace", "--version"), "millrace v1.2.3 (")
	requireStatic(t, filepath.Join(tree, "millrace"))
	for place, source := range map[string]string{
		"LICENSE": "LICENSE", "systemd/millrace.service": "deploy/millrace.service", "systemd/millrace-worker@.service": "deploy/millrace-worker@.service",
	} {
		require.Equal(t, document(t, source), read(t, tree, place))
	}
	for place, has := range map[string]string{
		"THIRD-PARTY-LICENSES": "\n==== github.com/rabbitmq/amqp091-go v", "man/man1/millrace-serve.1": "--amqp-url", "completions/millrace.bash": "millrace",
		"completions/_millrace": "#compdef millrace", "completions/millrace.fish": "millrace",
	} {
		require.Contains(t, strings.ReplaceAll(read(t, tree, place), `\-`, "-"), has, place)
	}
}

// dist runs scripts/dist.sh of a source tree, and returns the directory with the result.
func dist(t *testing.T, sources string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	tool(t, sources, []string{"VERSION=v1.2.3", "SOURCE_DATE_EPOCH=1795158930"}, "scripts/dist.sh", folder, "linux/"+runtime.GOARCH)
	return folder
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// requireStatic checks that no dynamic linker is named.
func requireStatic(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	for _, part := range file.Progs {
		require.NotEqual(t, elf.PT_INTERP, part.Type, "it is not static")
	}
}

// The workflow that publishes releases uses each action at a commit, with its version in a comment.
func TestActionsArePinned(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`).FindAllStringSubmatch(document(t, ".github/workflows/release.yml"), -1)
	require.NotEmpty(t, uses)
	for _, action := range uses {
		require.Regexp(t, `^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`, action[1])
	}
}

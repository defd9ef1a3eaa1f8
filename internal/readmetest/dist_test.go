//go:build linux

package readmetest

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dist.sh builds the packages for installations without a compiler; here only for this system. A
// copy of the sources that git does not know gives the same bytes.
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
	for place, source := range map[string]string{"LICENSE": "LICENSE", "systemd/millrace.service": "deploy/millrace.service"} {
		require.Equal(t, document(t, source), read(t, tree, place))
	}
	for place, has := range map[string]string{
		"THIRD-PARTY-LICENSES": "\n==== github.com/rabbitmq/amqp091-go v", "man/man1/millrace-serve.1": "--amqp-url", "completions/millrace.bash": "millrace",
		"completions/_millrace": "#compdef millrace", "completions/millrace.fish": "millrace",
	} {
		require.Contains(t, strings.ReplaceAll(read(t, tree, place), `\-`, "-"), has, place)
	}

	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no Debian package is made without dpkg-deb")
	}
	debianPackage(t, filepath.Join(folder, "millrace_1.2.3_"+runtime.GOARCH+".deb"))
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

// debianPackage installs, removes and purges a package in a directory of its own.
func debianPackage(t *testing.T, deb string) {
	require.Equal(t, "millrace 1.2.3 "+runtime.GOARCH+"\n", tool(t, root, nil, "dpkg-deb", "--show", "--showformat", "${Package} ${Version} ${Architecture}\n", deb))
	if os.Geteuid() != 0 {
		t.Skip("only root installs packages")
	}
	system := t.TempDir()
	dpkg := func(args ...string) {
		tool(t, root, nil, "dpkg", append([]string{"--root", system, "--force-script-chrootless"}, args...)...)
	}
	state := filepath.Join(system, "var", "lib", "private", "millrace")
	for _, dir := range []string{filepath.Join(system, "var", "lib", "dpkg", "info"), filepath.Join(system, "var", "lib", "dpkg", "updates"), state} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(system, "var", "lib", "dpkg", "status"), nil, 0o600))

	dpkg("--install", deb)
	require.Contains(t, tool(t, system, nil, "usr/bin/millrace", "--version"), "millrace v1.2.3 (")
	require.FileExists(t, filepath.Join(system, "usr", "share", "man", "man1", "millrace.1.gz"))
	unit := read(t, system, "usr/lib/systemd/system/millrace.service")
	require.Contains(t, unit, "\nExecStart=/usr/bin/millrace --config /etc/millrace/millrace.yaml serve ")
	require.NotContains(t, unit, "/usr/local")
	require.NoDirExists(t, filepath.Join(system, "etc", "systemd"), "it is not enabled")

	const settings = "etc/millrace/millrace.yaml"
	password := filepath.Join(t.TempDir(), "amqp-password")
	require.NoError(t, os.WriteFile(password, []byte("s3cret\n"), 0o600))
	mine := strings.ReplaceAll(read(t, system, settings), "/etc/millrace/amqp-password", password)
	require.NoError(t, os.WriteFile(filepath.Join(system, settings), []byte(mine), 0o600))
	require.Contains(t, tool(t, system, nil, "usr/bin/millrace", "--config", settings, "config"), "amqp://millrace:")

	dpkg("--install", deb)
	require.Equal(t, mine, read(t, system, settings), "an upgrade keeps the settings")
	dpkg("--remove", "millrace")
	require.NoFileExists(t, filepath.Join(system, "usr", "bin", "millrace"))
	require.FileExists(t, filepath.Join(system, settings))
	require.DirExists(t, state)
	dpkg("--purge", "millrace")
	require.NoFileExists(t, filepath.Join(system, settings))
	require.NoDirExists(t, state)
}

package readmetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quietly.sh shows the output of an installation only if it fails.
func TestQuietScript(t *testing.T) {
	quietly := filepath.Join(root, "scripts", "quietly.sh")
	said, err := exec.Command(quietly, "sh", "-c", "echo noise; echo more noise >&2").CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(said))

	failing := exec.Command(quietly, "sh", "-c", "echo noise; echo why >&2; exit 7")
	said, err = failing.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 7, failing.ProcessState.ExitCode())
	require.Equal(t, "sh failed with exit code 7:\nnoise\nwhy\n", string(said))
}

// progress.sh shows the progress of a build, and prints its errors completely.
func TestProgressScript(t *testing.T) {
	progress := exec.Command(filepath.Join(root, "scripts", "progress.sh"))
	progress.Stdin = strings.NewReader(strings.Repeat("go: downloading github.com/x/y-z/v2 v2.1.0\n", 45) +
		strings.Repeat("internal/abi\ngithub.com/x/y-z/v2\n", 125) + "# github.com/x/y\nx.go:1:2: undefined: a\n")
	said, err := progress.CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "  20 modules downloaded\n  40 modules downloaded\n  100 packages compiled\n  200 packages compiled\n"+
		"# github.com/x/y\nx.go:1:2: undefined: a\n", string(said))
}

// tools.sh reports only missing tools that a target needs.
func TestToolsScript(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"bash", "dirname", "grep", "head", "sort"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	for name, version := range map[string]string{
		"go": "go version go1.26.1 linux/amd64", "git": "git version 2.39.5", "make": "GNU Make 4.3", "node": "v18.20.4",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho '"+version+"'\n"), 0o700))
	}
	tools := func(names ...string) (string, error) {
		check := exec.Command(filepath.Join(root, "scripts", "tools.sh"), names...)
		check.Env = []string{"PATH=" + bin}
		said, err := check.CombinedOutput()
		return string(said), err
	}
	said, err := tools("go", "git", "make")
	require.NoError(t, err, said)
	require.Empty(t, said)
	said, err = tools()
	require.Error(t, err)
	require.Equal(t, "missing: Node 18.20.4 is too old, 20 or newer is needed (https://nodejs.org)\n"+
		"missing: npm 9 or newer is not installed (it comes with Node)\n"+
		"missing: Python 3.11 or newer is not installed (package python3)\n", said)
}

// `make up` shows progress while it builds, and needs what README says.
func TestMakeUpSaysWhatItDoes(t *testing.T) {
	recipe, err := exec.Command("make", "-n", "-C", root, "up").CombinedOutput()
	require.NoError(t, err, "%s", recipe)
	require.Contains(t, string(recipe), "scripts/tools.sh go git make\n")
	require.NotContains(t, string(recipe), "scripts/tools.sh\n", "it uses neither Node nor Python")
	require.Regexp(t, `(?s)\bwith Go 1\.26, git and\s+make:\s+make up\n`, document(t, "README.md"))
	require.Contains(t, string(recipe), "(the first time takes about a minute)")
	require.Contains(t, string(recipe), "go build -v")
	require.Contains(t, string(recipe), "scripts/progress.sh")
	require.Contains(t, document(t, "scripts/apt-install.sh"), `"$here/quietly.sh" apt-get install`)
}

// gotest.sh ends with what failed, or appends that to a file. Go remembers results only without
// -shuffle, so the order is random only in CI.
func TestGoTestScript(t *testing.T) {
	bin := t.TempDir()
	fake := "#!/bin/sh\necho \"go $*\"\necho '--- FAIL: TestX (0.00s)'\necho '    x_test.go:1: why'\necho FAIL\n" +
		"printf 'FAIL\\texample.com/x\\t0.1s\\n'\necho 'ok  example.com/y'\nexit 1\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(fake), 0o700))
	gotest := func(summary string) string {
		run := exec.Command(filepath.Join(root, "scripts", "gotest.sh"), "-v")
		run.Stdin = strings.NewReader("example.com/y\nexample.com/x\n")
		run.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "RERUN=", "SUMMARY="+summary)
		said, err := run.CombinedOutput()
		require.Error(t, err, "%s", said)
		return string(said)
	}
	const failed = "\nFailed:\n--- FAIL: TestX (0.00s)\nFAIL\texample.com/x\t0.1s\n"
	said := gotest("")
	require.Regexp(t, `^go test -timeout \w+ -p \d+ -v example.com/x example.com/y\n`, said)
	require.True(t, strings.HasSuffix(said, "ok  example.com/y\n"+failed), said)
	require.Contains(t, document(t, "scripts/gotest.sh"), ` -shuffle=on "${arguments[@]}"`)

	summary := filepath.Join(t.TempDir(), "summary")
	require.NotContains(t, gotest(summary), "Failed:")
	require.Equal(t, failed, string(must(os.ReadFile(summary))))
}

// In CI, what fails runs once more, and is listed. By hand, the first failure is the result.
func TestFailedClientTestsRunOnceMore(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
		return path
	}
	script := func(name string) string { return filepath.Join(root, "scripts", name) }
	// Each fails where the file ran does not exist yet.
	node := write("a.test.mjs", `import { test } from 'node:test';
import { existsSync, writeFileSync } from 'node:fs';
function once() { if (!existsSync('ran')) { writeFileSync('ran', ''); throw new Error('the first time'); } }
test('others', () => {});
test('one of #2 [sometimes]', once);
`)
	after := write("after.test.mjs", `import { test } from 'node:test';
import { existsSync, writeFileSync } from 'node:fs';
test('passes', () => { if (!existsSync('ran')) { writeFileSync('ran', ''); setTimeout(() => { throw new Error('after it'); }, 50); } });
test('waits', () => new Promise((done) => { setTimeout(done, 100); }));
`)
	command := write("once.sh", "#!/bin/sh\ntest -e ran || { touch ran; exit 1; }\n")
	for _, test := range []struct {
		args   []string
		failed string
	}{
		{[]string{script("nodetest.sh"), "spec", node}, "\nFailed:\none of #2 [sometimes]\nrunning them once more\n"},
		{[]string{script("nodetest.sh"), "spec", after}, "\nFailed:\n" + after + "\nrunning them once more\n"},
		{[]string{script("again.sh"), command}, "\nFailed: " + command + "\nrunning it once more\n"},
	} {
		run := func(rerun string) (string, error) {
			run := exec.Command(test.args[0], test.args[1:]...)
			run.Dir = dir
			run.Env = append(os.Environ(), "RERUN="+rerun)
			said, err := run.CombinedOutput()
			return string(said), err
		}
		said, err := run("")
		require.Error(t, err, said)
		require.NotContains(t, said, "once more")
		require.NoError(t, os.Remove(filepath.Join(dir, "ran")))
		said, err = run("1")
		require.NoError(t, err, said)
		require.Contains(t, said, test.failed)
		require.NoError(t, os.Remove(filepath.Join(dir, "ran")))
	}
	always := write("b.test.mjs", "import { test } from 'node:test';\ntest('always', () => { throw new Error('each time'); });\n")
	run := exec.Command(script("nodetest.sh"), "dot", always)
	run.Env = append(os.Environ(), "RERUN=1")
	require.Error(t, run.Run())
}

// The tests of one package need no JDK. CI installs everything in one call.
func TestTestsInstallWhatTheyNeed(t *testing.T) {
	dry := func(args ...string) string {
		run := exec.Command("make", append([]string{"-n", "-C", root}, args...)...)
		run.Env = append(os.Environ(), "MAKEFLAGS=")
		said, err := run.CombinedOutput()
		require.NoError(t, err, "%s", said)
		return string(said)
	}
	recipe := func(pkg string) string { return dry("test", "PKG="+pkg) }
	require.Contains(t, recipe("./wire"), "scripts/deps.sh broker compiler\n")
	require.NotContains(t, recipe("./wire"), "java")
	for _, pkg := range []string{"./internal/readmetest", "./internal/spectest", "./internal/..."} {
		require.Contains(t, recipe(pkg), "scripts/deps.sh broker compiler python ruby rails node jest pyright java imports proxies\n", pkg)
	}
	require.Contains(t, dry("-B", "test-python"), "requirements-test.txt")
	for _, target := range []string{"test-python", "test", "packages"} {
		require.NotContains(t, dry("-B", target), "requirements-dev.txt", "what only the linters need")
	}
	require.Contains(t, dry("-B", "lint-python"), "requirements-dev.txt")

	not := []string{"etcd", "packages", "peers", "recipes"} // for what CI does not run
	parts := slices.DeleteFunc(all(`(?m)^#   ([\w-]+)  `, document(t, "scripts/deps.sh")), func(part string) bool { return slices.Contains(not, part) })
	calls := all(`(?m)^\s*scripts/deps\.sh (.*)$`, document(t, ".ci/run"))
	require.Len(t, calls, 1)
	require.ElementsMatch(t, parts, strings.Fields(calls[0]))
}

// `make test` also runs the tests without the race detector after a test with it has failed.
func TestMakeTestRunsAll(t *testing.T) {
	failing := filepath.Join(t.TempDir(), "gotest")
	require.NoError(t, os.WriteFile(failing, []byte("#!/bin/sh\necho \"tested $(cat) $1\"\necho \"failed $1\" >>$SUMMARY\nexit 3\n"), 0o700))
	run := exec.Command("make", "-C", root, "-o", "deps-go", "test", "PKG=./wire ./internal/pause", "GO_TEST="+failing)
	run.Env = append(os.Environ(), "MAKEFLAGS=") // those of a make that runs this test
	said, err := run.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "tested github.com/millrace-jobs/millrace/wire -race\n")
	require.Regexp(t, "tested github.com/millrace-jobs/millrace/internal/pause -tags=testcontainers\n"+
		"(failed -race\nfailed -tags=testcontainers|failed -tags=testcontainers\nfailed -race)\n", string(said))
}

// The binary's version comes from the tags of the sidecar. The Go client's module has its own tags
// in the same repository.
func TestVersionScript(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "scripts"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "scripts", "version.sh"), []byte(document(t, "scripts/version.sh")), 0o700))
	for _, line := range []string{
		"init --quiet", "add .", "commit --quiet --message one", "tag v1.2.3", "commit --quiet --allow-empty --message two", "tag clients/go/v1.2.4",
	} {
		tool(t, folder, nil, "git", append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.com"}, strings.Fields(line)...)...)
	}
	require.Regexp(t, `^v1\.2\.3-1-g[0-9a-f]+\n$`, tool(t, folder, nil, "scripts/version.sh"))
}

package readmetest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/millrace-jobs/millrace/internal/modproxy"
)

// The Go modules of the repository.
const (
	sidecarModule = modproxy.Sidecar
	clientModule  = modproxy.Client
	otelModule    = modproxy.Client + "/otelmillrace"
)

// buildFlags are the build flags of the Makefile.
const buildFlags = "-trimpath -gcflags=all=-dwarf=false"

// modulePacked packs a module in the form that a module proxy serves, and returns the path of the
// zip.
func modulePacked(t *testing.T, proxy, path, folder string) string {
	t.Helper()
	archive, err := modproxy.Pack(proxy, path, "v"+version, folder)
	require.NoError(t, err)
	return archive
}

// packedModules packs the modules from a copy of the repository. It returns the environment of a
// machine that has nothing else of Millrace: the go command finds the packed modules first, and
// other modules in the cache of this machine.
func packedModules(t *testing.T) (copied, proxy string, env []string) {
	t.Helper()
	copied, proxy = t.TempDir(), t.TempDir()
	checkout(t, copied)
	modulePacked(t, proxy, clientModule, filepath.Join(copied, "clients", "go"))
	modulePacked(t, proxy, otelModule, filepath.Join(copied, "clients", "go", "otelmillrace"))
	modulePacked(t, proxy, sidecarModule, copied)
	return copied, proxy, []string{
		"GOPROXY=" + strings.Join(append([]string{"file://" + proxy}, proxies(t)...), ","),
		// The flags of the Makefile, so that most packages are compiled already, and its GOGC.
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=" + buildFlags + " -modcacherw", "GOWORK=off", "GOSUMDB=off", "CGO_ENABLED=0", "GOGC=400",
	}
}

// proxies returns where the go command finds modules: first in the cache of this machine.
func proxies(t *testing.T) []string {
	t.Helper()
	set := strings.Split(tool(t, root, nil, "go", "env", "GOMODCACHE", "GOPROXY"), "\n")
	return []string{"file://" + filepath.Join(set[0], "cache", "download"), set[1]}
}

// `go install` works when the modules are released, and a copy of the repository builds without
// go.work.
func TestGoInstall(t *testing.T) {
	t.Parallel()
	require.Contains(t, document(t, "Makefile"), "GOFLAGS := $(GOFLAGS) "+buildFlags+"\n")
	copied, _, env := packedModules(t)
	bin := t.TempDir()
	tool(t, t.TempDir(), append(env, "GOBIN="+bin), "go", "install", sidecarModule+"/cmd/millrace@v"+version)
	said := tool(t, bin, nil, filepath.Join(bin, "millrace"), "version")
	require.Equal(t, "millrace v"+version+" ("+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")\n", said)

	require.NoError(t, os.Remove(filepath.Join(copied, "go.work")))
	tool(t, copied, append(env, "GOFLAGS="+buildFlags+" -mod=mod -modcacherw"), "go", "build", "-o", bin, "./cmd/millrace")
}

// A program can require the released client, which brings few other modules.
func TestGoClientAlone(t *testing.T) {
	t.Parallel()
	_, proxy, env := packedModules(t)
	// The client does not need it.
	require.NoError(t, os.RemoveAll(filepath.Join(proxy, filepath.FromSlash(sidecarModule), "@v")))
	app := t.TempDir()
	blocks := readmeBlocks(t, "clients/go/README.md")
	require.NoError(t, os.WriteFile(filepath.Join(app, "main.go"), []byte(blocks["main.go"]), 0o600))
	tool(t, app, env, "go", "mod", "init", "example.com/app")
	tool(t, app, env, "go", "get", clientModule+"@v"+version)
	tool(t, app, env, "go", "build", "-o", "app", ".")

	list := []string{"go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
	with := []string{"example.com/app", clientModule, "github.com/rabbitmq/amqp091-go", "github.com/tidwall/gjson", "github.com/tidwall/sjson",
		"github.com/tidwall/match", "github.com/tidwall/pretty"}
	require.Subset(t, with, strings.Fields(tool(t, app, env, list[0], append(list[1:], "./...", clientModule+"/millracetest")...)))
	tool(t, app, env, "go", "get", clientModule+"/execjobs@v"+version)
	require.Subset(t, append(with, "go.yaml.in/yaml/v3"), strings.Fields(tool(t, app, env, list[0], append(list[1:], clientModule+"/execjobs")...)))
	required := regexp.MustCompile(`(?m)^\t(\S+) v`)
	require.ElementsMatch(t, []string{
		"github.com/rabbitmq/amqp091-go", "github.com/tidwall/gjson", "github.com/tidwall/sjson", "go.yaml.in/yaml/v3",
		"github.com/tidwall/match", "github.com/tidwall/pretty", "github.com/stretchr/testify", "go.uber.org/goleak",
	}, all(required.String(), document(t, "clients/go/go.mod")), "each of them comes to every program that uses the client")
}

// A program that traces can require the released module.
func TestGoTracingAlone(t *testing.T) {
	t.Parallel()
	_, _, env := packedModules(t)
	app := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(app, "main.go"), []byte(`package main

import (
	millrace "`+clientModule+`"
	"`+otelModule+`"
)

func main() {
	client, err := millrace.NewClient(millrace.ClientConfig{
		URL: "amqp://localhost", Middleware: []millrace.ClientMiddleware{otelmillrace.Publish(nil)},
	})
	if err != nil {
		panic(err)
	}
	client.Close()
	millrace.NewWorker(millrace.WorkerConfig{}).Use(otelmillrace.Process(nil))
}
`), 0o600))
	tool(t, app, env, "go", "mod", "init", "example.com/app")
	tool(t, app, env, "go", "get", otelModule+"@v"+version)
	tool(t, app, env, "go", "run", ".")
}

// The binary has no module that only tests and benchmarks use, nor the version of lz4 that comes
// with one of these.
func TestBinaryHasNoModulesOfTests(t *testing.T) {
	_, section, found := strings.Cut(document(t, "docs/dependencies.md"), "\n## In tests and benchmarks only\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	listed := all("(?m)^\\| `([^`]+)`", section)
	require.Greater(t, len(listed), 10)
	has := all(`(?m)^(\S+)$`, tool(t, root, nil, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/millrace"))
	require.Contains(t, has, "github.com/rabbitmq/amqp091-go")
	for _, module := range append(listed, "github.com/pierrec/lz4") {
		if module != "github.com/prometheus/procfs" { // client_golang uses it too
			require.NotContains(t, has, module)
		}
	}
}

// All places name the same version of the client that the sidecar requires. go.sum has its checksum
// only after that version is released, and the checksum never fits another version.
func TestVersionOfTheGoClient(t *testing.T) {
	tag := "v" + version
	require.Contains(t, document(t, "go.mod"), "\t"+clientModule+" "+tag+"\n")
	require.Contains(t, document(t, "go.work"), "\nreplace "+clientModule+" "+tag+" => ./clients/go\n")
	require.Contains(t, document(t, "clients/go/otelmillrace/go.mod"), "\t"+clientModule+" "+tag+"\n")
	for _, file := range []string{"go.mod", "clients/go/go.mod", "clients/go/otelmillrace/go.mod"} {
		require.NotRegexp(t, `(?m)^\s*(replace|toolchain)\b`, document(t, file), file)
	}
	require.NotRegexp(t, `millrace-jobs/millrace\s`, document(t, "clients/go/go.mod"), "the client does not require the sidecar")

	copied := t.TempDir()
	checkout(t, copied)
	archive := modulePacked(t, t.TempDir(), clientModule, filepath.Join(copied, "clients", "go"))
	sum, err := dirhash.HashZip(archive, dirhash.Hash1)
	require.NoError(t, err)
	for line := range strings.Lines(document(t, "go.sum") + document(t, "clients/go/otelmillrace/go.sum")) {
		if rest, is := strings.CutPrefix(line, clientModule+" "); is {
			require.Contains(t, []string{tag + " " + sum + "\n", tag + "/go.mod " + sumOfGoMod(t, copied) + "\n"}, rest,
				"clients/go has changed since %s was released: run scripts/set-version.sh with its next version, and make tidy", tag)
		}
	}
}

func sumOfGoMod(t *testing.T, folder string) string {
	t.Helper()
	sum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(filepath.Join(folder, "clients", "go", "go.mod")) })
	require.NoError(t, err)
	return sum
}

// `make tidy` leaves go.mod and go.sum of all modules unchanged.
func TestModulesAreTidy(t *testing.T) {
	t.Parallel()
	copied := t.TempDir()
	checkout(t, copied)
	tool(t, copied, nil, "scripts/tidy.sh")
	for _, file := range []string{
		"go.mod", "go.sum", "clients/go/go.mod", "clients/go/go.sum", "clients/go/otelmillrace/go.mod", "clients/go/otelmillrace/go.sum",
	} {
		tidied, err := os.ReadFile(filepath.Join(copied, file))
		require.NoError(t, err)
		require.Equal(t, string(tidied), withoutSumsOfTheClient(document(t, file)), "%s: run make tidy", file)
	}
}

func withoutSumsOfTheClient(text string) string {
	return regexp.MustCompile(fmt.Sprintf(`(?m)^%s v\S+ h1:.*\n`, regexp.QuoteMeta(clientModule))).ReplaceAllString(text, "")
}

// The client and its tests compile without go.work on the systems of its users. They use nothing
// that is newer than the Go version in its go.mod.
func TestGoClientOnOtherSystems(t *testing.T) {
	require.Contains(t, document(t, "clients/go/go.mod"), "\ngo 1.24\n")
	for _, system := range []string{"linux", "darwin", "windows"} {
		tool(t, filepath.Join(root, "clients", "go"), []string{"GOOS=" + system, "GOWORK=off", "CGO_ENABLED=0", "GOGC=400"}, "go", "vet", "./...")
	}
}

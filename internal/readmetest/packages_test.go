package readmetest

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// version is the version of all client libraries.
const version = "0.1.0"

// placesOfVersion are the places that name it, as patterns by file.
var placesOfVersion = map[string]string{
	"clients/go/config.go":                                           `const Version = "(.*)"`,
	"clients/go/otelmillrace/go.mod":                                 `millrace/clients/go v(\S+)`,
	"clients/python/src/millrace_jobs/_version.py":                   `__version__ = "(.*)"`,
	"clients/ruby/lib/millrace/version.rb":                           `VERSION = '(.*)'`,
	"clients/ruby/README.md":                                         `millrace-jobs-([\d.]+)\.gem`,
	"clients/javascript/package.json":                                `"version": "(.*)"`,
	"clients/java/pom.xml":                                           `<artifactId>millrace</artifactId>\s+<version>(.*)</version>`,
	"clients/java/README.md":                                         `<artifactId>millrace</artifactId>\s+<version>(.*)</version>`,
	"clients/java/src/main/java/io/github/millracejobs/Version.java": `"([\d.]+)"`,
	"clients/javascript/package-lock.json":                           `(?s)^.{0,60}"version": "([\d.]+)"`,
	"docs/tutorials/java.md":                                         `<artifactId>millrace</artifactId>\s+<version>(.*)</version>`,
	"docs/tutorials/ruby.md":                                         `millrace-jobs-([\d.]+)\.gem`,
	"go.mod":                                                         `millrace/clients/go v(\S+)`,
	"go.work":                                                        `millrace/clients/go v(\S+)`,
	"internal/readmetest/packages_test.go":                           `const version = "([\d.]+)"`,
}

// All places name the same version, and a script changes it in all of them for a release.
func TestVersionsOfClients(t *testing.T) {
	folder := t.TempDir()
	checkout(t, folder)
	tool(t, folder, nil, "scripts/set-version.sh", "9.8.7")
	for path, place := range placesOfVersion {
		require.Equal(t, []string{version}, all(place, document(t, path)), path)
		changed, err := os.ReadFile(filepath.Join(folder, path))
		require.NoError(t, err)
		require.Equal(t, []string{"9.8.7"}, all(place, string(changed)), path)
	}
}

// The packages of the clients can be built as for publishing, and installed and loaded without
// anything else of Millrace.
func TestPackages(t *testing.T) {
	for language, look := range map[string]func(t *testing.T, folder string){
		"python": pythonPackage, "javascript": javascriptPackage, "ruby": rubyPackage, "java": javaPackage,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			tool(t, root, nil, "scripts/packages.sh", folder, language)
			look(t, folder)
		})
	}
}

func pythonPackage(t *testing.T, folder string) {
	wheel := filepath.Join(folder, "millrace_jobs-"+version+"-py3-none-any.whl")
	require.Equal(t, []string{filepath.Base(wheel), "millrace_jobs-" + version + ".tar.gz"}, names(t, folder))
	inside := inZip(t, wheel)
	require.Contains(t, inside, "millrace_jobs/py.typed")
	require.Contains(t, inside, "millrace_jobs-"+version+".dist-info/licenses/LICENSE")
	for _, name := range inside {
		require.Regexp(t, `^millrace_jobs(-[\d.]+\.dist-info)?/`, name, "nothing but the module")
	}
	sources := inTar(t, filepath.Join(folder, "millrace_jobs-"+version+".tar.gz"))
	require.Contains(t, sources, "millrace_jobs-"+version+"/LICENSE")
	for _, name := range sources {
		require.NotRegexp(t, `/(tests|conformance)/`, name, "it needs the repository around it")
	}

	env := t.TempDir()
	tool(t, env, nil, "python3", "-m", "venv", env)
	python := filepath.Join(env, "bin", "python")
	tool(t, env, nil, python, "-m", "pip", "install", "--quiet", wheel)
	said := tool(t, env, nil, python, "-c", `
import importlib.metadata, importlib.util, millrace_jobs, millrace_jobs.testing
about = importlib.metadata.metadata("millrace-jobs")
print(millrace_jobs.__version__, about["Version"], about["License-Expression"], about["Author"], importlib.util.find_spec("millrace"))
print(len(about["Summary"]) > 20, len(about["Keywords"].split(",")), *sorted(url.split(",")[0] for url in about.get_all("Project-URL")))
print([one for one in about.get_all("Classifier") if one.startswith("Typing")])`)
	require.Equal(t, version+" "+version+" Apache-2.0 The Millrace authors None\n"+
		"True 10 Changelog Documentation Homepage Issues Source\n['Typing :: Typed']\n", said)
}

func javascriptPackage(t *testing.T, folder string) {
	require.Equal(t, []string{"millrace-jobs-" + version + ".tgz"}, names(t, folder))
	archive := filepath.Join(folder, "millrace-jobs-"+version+".tgz")
	require.Contains(t, inTar(t, archive), "package/LICENSE")

	project := t.TempDir()
	tool(t, project, nil, "npm", "install", "--prefer-offline", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", archive)
	said := tool(t, project, nil, "node", "-e", `
const { Client } = require('millrace-jobs');
const about = require('millrace-jobs/package.json');
console.log(about.description.length > 20, about.keywords.length, about.homepage, about.bugs);
import('millrace-jobs/testing').then(({ Fake }) => console.log(typeof Client, typeof Fake, about.version, about.license, about.repository.directory));`)
	const home = "https://github.com/millrace-jobs/millrace"
	require.Equal(t, "true 10 "+home+"/tree/main/clients/javascript#readme "+home+"/issues\n"+
		"function function "+version+" Apache-2.0 clients/javascript\n", said)
}

func rubyPackage(t *testing.T, folder string) {
	require.Equal(t, []string{"millrace-jobs-" + version + ".gem"}, names(t, folder))
	gems := t.TempDir()
	env := []string{"GEM_HOME=" + gems}
	tool(t, gems, env, "gem", "install", "--silent", "--local", "--no-document", filepath.Join(folder, "millrace-jobs-"+version+".gem"))
	said := tool(t, gems, env, "ruby", "-e", `
require 'millrace-jobs'
require 'millrace/testing'
about = Gem.loaded_specs.fetch('millrace-jobs')
puts [Millrace::VERSION, about.license, File.exist?(File.join(about.full_gem_path, 'LICENSE')), about.executables, about.metadata.values.grep(/^https/).size].join(' ')
puts [about.summary, about.description, about.homepage].map { |text| text.to_s.size > 20 }.join(' ')`)
	require.Equal(t, version+" Apache-2.0 true millrace-worker 4\ntrue true true\n", said)
}

func javaPackage(t *testing.T, folder string) {
	jar := filepath.Join(folder, "millrace-"+version+".jar")
	base := strings.TrimSuffix(jar, ".jar")
	require.Equal(t, []string{filepath.Base(base) + "-javadoc.jar", filepath.Base(base) + "-sources.jar", filepath.Base(jar), filepath.Base(base) + ".pom"}, names(t, folder))
	require.Contains(t, inZip(t, jar), "META-INF/LICENSE")
	require.Contains(t, inZip(t, base+"-sources.jar"), "io/github/millracejobs/Client.java")
	require.True(t, slices.ContainsFunc(inZip(t, base+"-javadoc.jar"), func(name string) bool {
		return strings.HasSuffix(name, "io/github/millracejobs/Client.html")
	}))
	for _, member := range []string{"name", "description", "url", "licenses", "developers", "scm"} {
		require.Contains(t, document(t, "clients/java/pom.xml"), "\n  <"+member+">", "Maven Central refuses a package without it")
	}
	require.Contains(t, document(t, "clients/java/pom.xml"), "<groupId>io.netty</groupId>", "what amqp-client can do without is excluded")

	libraries := []string{jar}
	for _, pattern := range []string{"com/rabbitmq/amqp-client", "com/fasterxml/jackson/core/jackson-core", "org/slf4j/slf4j-api"} {
		found, err := filepath.Glob(filepath.Join(root, ".cache", "maven", pattern, "*", "*.jar"))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		libraries = append(libraries, found...)
	}
	program := filepath.Join(t.TempDir(), "Load.java")
	require.NoError(t, os.WriteFile(program, []byte(`
import io.github.millracejobs.*;
import io.github.millracejobs.testing.Fake;

public class Load {
    public static void main(String[] args) {
        Worker worker = Worker.builder().build().handle("Greet", String.class, (name, job) -> System.out.println("Hello " + name));
        Fake client = new Fake(worker);
        client.enqueue("Greet", "Ann");
        client.drain();
    }
}
`), 0o600))
	require.Contains(t, tool(t, folder, nil, "java", "-cp", strings.Join(libraries, ":"), program), "Hello Ann\n")
}

// tool runs a program that must succeed, and returns its standard output.
func tool(t *testing.T, folder string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		out = append(out, exit.Stderr...)
	}
	require.NoError(t, err, "%s\n%s", cmd, out)
	return string(out)
}

// prepared has a function for each script that prepare has run, by its name.
var prepared sync.Map

// prepare runs a script that installs or builds a client, once for all tests.
func prepare(t *testing.T, script string) {
	t.Helper()
	run, _ := prepared.LoadOrStore(script, sync.OnceValue(func() error {
		if out, err := exec.Command(filepath.Join(root, script)).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", script, err, out)
		}
		return nil
	}))
	require.NoError(t, run.(func() error)())
}

// names returns the files of a directory.
func names(t *testing.T, folder string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func inZip(t *testing.T, path string) (found []string) {
	t.Helper()
	archive, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer archive.Close()
	for _, file := range archive.File {
		found = append(found, file.Name)
	}
	return found
}

func inTar(t *testing.T, path string) (found []string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		found = append(found, header.Name)
	}
}

// Each package has its own copy of the licence, because it is built without the rest of the
// repository.
func TestLicencesOfPackages(t *testing.T) {
	for _, language := range []string{"python", "ruby", "javascript", "java"} {
		require.Equal(t, document(t, "LICENSE"), document(t, "clients/"+language+"/LICENSE"))
	}
}

// installs matches a command that installs packages from a registry, in any language.
var installs = regexp.MustCompile(`(?m)\b(?:(?:pip3?|pipx|uv pip|uv tool|gem|go|npm|cargo|brew) install|(?:uv|poetry|yarn|pnpm|bundle|npm|bun) add|npm i|pnpm i|go get)((?:[ \t]+[^\s` + "`" + `'")&|;]+)+)|\bgem '([^']+)'(?:, path:)?`)

// others are the packages of other projects that the documents install.
var others = []string{"pika", "bunny", "amqplib"}

// No document, client or comment has a command that would install a package from a registry in
// Millrace's name: no package of Millrace is published, and the PyPI name millrace belongs to
// another project.
func TestInstallCommands(t *testing.T) {
	for path, text := range texts(t) {
		for _, command := range installs.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(command[0], "gem '") {
				require.True(t, strings.HasSuffix(command[0], ", path:") || slices.Contains(others, command[2]), "%s: %s", path, command[0])
				continue
			}
			for _, word := range strings.Fields(command[1]) {
				local := strings.HasPrefix(word, ".") || strings.HasPrefix(word, "-") || strings.HasPrefix(word, "$")
				require.True(t, local || slices.Contains(others, word), "%s: %q installs %q, which is not ours", path, strings.TrimSpace(command[0]), word)
			}
		}
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		require.NotRegexp(t, `(?m)^[ \t]*(from millrace\b|import millrace($|\.| as\b))`, text, "%s: Python's module millrace is another project's", path)
		require.NotRegexp(t, `(from|require\(|import\() ?['"]millrace['"/]`, text, "%s: npm's package millrace is not ours", path)
	}
}

func TestInstallCommandsAreFound(t *testing.T) {
	for line, want := range map[string]string{
		"    pip install millrace": "millrace", "npm install --save millrace": "--save millrace", "run `gem install millrace`": "millrace",
		"uv add millrace-jobs": "millrace-jobs", "go get github.com/x/y": "github.com/x/y",
	} {
		found := installs.FindStringSubmatch(line)
		require.NotNil(t, found, line)
		require.Equal(t, want, strings.TrimSpace(found[1]))
	}
	require.Equal(t, "millrace", installs.FindStringSubmatch("gem 'millrace'")[2])
}

// texts returns the documents and all files of the clients, by their paths.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, path := range documents(t) {
		found[path] = document(t, path)
	}
	list := tool(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "clients")
	for path := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		// It may be deleted, without a commit.
		if _, err := os.Lstat(filepath.Join(root, path)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found[path] = document(t, path)
	}
	require.Greater(t, len(found), 200)
	return found
}

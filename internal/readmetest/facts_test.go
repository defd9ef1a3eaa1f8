package readmetest

import (
	"bytes"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// all returns the matches of a pattern's group in a text, each once, in order.
func all(pattern, text string) []string {
	var found []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// everything returns all documents as one text.
func everything(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, path := range documents(t) {
		text.WriteString(document(t, path))
	}
	return text.String()
}

// sources returns the files below a directory that match a pattern, as one text.
func sources(t *testing.T, folder, pattern string) string {
	t.Helper()
	var text bytes.Buffer
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		matches, err := filepath.Match(pattern, entry.Name())
		if err != nil || !matches {
			return err
		}
		raw, err := os.ReadFile(path)
		text.Write(raw)
		return err
	})
	require.NoError(t, err)
	return text.String()
}

// help returns the output of `millrace … --help`.
func help(t *testing.T, command ...string) string {
	t.Helper()
	out, err := exec.Command(program(t), append(command, "--help")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

const flagPattern = `(--[a-z][a-z-]+)`

// The table of settings and `millrace serve` have the same settings.
func TestSettings(t *testing.T) {
	table := document(t, "docs/settings.md")
	said := help(t, "serve")
	general := []string{"--config", "--help", "--version"}
	flags := slices.DeleteFunc(all(`(?m)^ +(?:-\w, )?`+flagPattern, said), func(f string) bool { return slices.Contains(general, f) })
	require.Equal(t, flags, all("(?m)^\\| `"+flagPattern+"` \\| `MILLRACE_", table))
	for _, flag := range flags {
		variable := "MILLRACE_" + strings.ToUpper(strings.ReplaceAll(flag[2:], "-", "_"))
		require.True(t, strings.Contains(said, "$"+variable), "%s is not %s", flag, variable)
		require.True(t, strings.Contains(table, "| `"+flag+"` | `"+variable+"` |"), "%s is not %s in the table", flag, variable)
	}
}

var otherTool = regexp.MustCompile(`rabbitmqctl|rabbitmq-(queues|streams|diagnostics|plugins)|npm install|kubectl|no-install-recommends|apk add|skopeo|helm |cosign|(millrace|app)-worker|brew |-m millrace_jobs`)

// Each flag that a document names is in the help of a command.
func TestFlags(t *testing.T) {
	var said strings.Builder
	for _, command := range all(`(?m)^  (\w+)  `, help(t)) {
		text := help(t, command)
		said.WriteString(text)
		for _, sub := range all(`(?m)^  `+command+` ([\w-]+)  `, text) {
			said.WriteString(help(t, command, sub))
		}
	}
	known := all(flagPattern, said.String())
	require.Greater(t, len(known), 20)
	for line := range strings.Lines(everything(t)) {
		// Other tools have their own flags.
		if otherTool.MatchString(line) {
			continue
		}
		for _, flag := range all("(?:^|[ =`])"+flagPattern, line) {
			require.Contains(t, known, flag, line)
		}
	}
}

// Each environment variable that a document names is in the code.
func TestVariables(t *testing.T) {
	code := sources(t, ".", "*.go") + sources(t, "clients", "build")
	for _, name := range all(`\b(MILLRACE_\w+)`, everything(t)) {
		require.True(t, strings.Contains(code, `"`+name+`"`) || strings.Contains(code, `"`+name+`=`) || strings.Contains(code, "${"+name+":-") ||
			strings.Contains(code, "process.env."+name+" "), "nothing reads %s", name)
	}
}

// The changelog says which formats the newest version has, so that users know what an upgrade does.
func TestFormats(t *testing.T) {
	format := all(`(?m)^const Format = (\d+)$`, document(t, "wire/types.go"))[0]
	schema := all(`(?m)^const Schema = (\d+)$`, document(t, "tracker/entries.go"))[0]
	newest := strings.Split(document(t, "CHANGELOG.md"), "\n## ")[1]
	require.Contains(t, newest, "*Journal format* "+format+", *view schema* "+schema+".")
	require.Contains(t, document(t, "docs/wire-format/journal.md"), "| `millrace-format` | integer | "+format+",")
	require.Contains(t, document(t, "docs/upgrading.md"), "\n## To journal format "+format+"\n")
}

// The table of metrics and the code have the same metrics.
func TestMetrics(t *testing.T) {
	code := sources(t, "httpapi/prom", "*.go")
	made := append(all(`Name: "(millrace_\w+)"`, code), prefixed("millrace_", all(`desc\("(\w+)"`, code))...)
	slices.Sort(made)
	require.Greater(t, len(made), 20)
	require.Equal(t, made, all("(?m)^\\| `(millrace_\\w+)` \\|", document(t, "docs/monitoring.md")))
	named := append(slices.Clone(made), "millrace_session", "millrace_plugin") // a cookie, and the plugin's broker user
	// The first is a Python module, the second a command of Django projects, and the others are
	// class methods in Ruby.
	named = append(named, "millrace_jobs", "millrace_worker", "millrace_options", "millrace_retry_in")
	for _, name := range all(`\b(millrace_[a-z]\w+)`, everything(t)) {
		require.Contains(t, named, name)
	}
}

func prefixed(prefix string, names []string) []string {
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}

// The documented permissions are those that doctor prints.
func TestPermissions(t *testing.T) {
	doctor := exec.Command(program(t), "doctor", "--permissions", "--amqp-url", "amqp://127.0.0.1:1/", "--http-addr", "127.0.0.1:1")
	said, err := doctor.Output() // it fails, because there is no broker
	require.Error(t, err)
	patterns := all(`(?m)^ +(?:configure|write|read) +(\S+)$`, string(said))
	require.Greater(t, len(patterns), 5)
	for _, pattern := range patterns {
		require.True(t, strings.Contains(document(t, "docs/permissions.md"), "'"+pattern+"'"), "%s is not in docs/permissions.md", pattern)
	}
}

// parameter is a parameter of a path, as the documents write it.
var parameter = regexp.MustCompile(`:(\w+)`)

// The tables of docs/api/routes.md and the API's contract have the same routes, and a sidecar
// answers each.
func TestRoutes(t *testing.T) {
	s := serve(t)
	var documented []string
	for _, route := range regexp.MustCompile("(?m)^\\| `([A-Z]+) (/\\S+)` \\|").FindAllStringSubmatch(document(t, "docs/api/routes.md"), -1) {
		method, path := route[1], route[2]
		documented = append(documented, method+" "+parameter.ReplaceAllString(path, "{$1}"))
		if method != http.MethodGet {
			continue // other tests check these
		}
		body, _ := s.request(method, parameter.ReplaceAllString(path, "1"))
		require.NotContains(t, body, "nothing at this path", route[0])
		require.NotContains(t, body, `"error":"method_not_allowed"`, route[0])
	}
	var described []string
	var path string
	for line := range strings.Lines(document(t, "httpapi/openapi.yaml")) {
		if found := regexp.MustCompile(`^  (/\S*):`).FindStringSubmatch(line); found != nil {
			path = found[1]
		}
		if found := regexp.MustCompile(`^    (get|put|post|delete|patch):`).FindStringSubmatch(line); found != nil {
			described = append(described, strings.ToUpper(found[1])+" "+path)
		}
	}
	require.Greater(t, len(described), 20)
	require.ElementsMatch(t, described, documented)
}

// Each test that a document names exists.
func TestNamedTests(t *testing.T) {
	code := sources(t, ".", "*_test.go")
	named := all(`\b(Test[A-Z]\w+)`, everything(t))
	require.NotEmpty(t, named)
	for _, name := range named {
		require.True(t, strings.Contains(code, "func "+name+"(t *testing.T)"), "there is no %s", name)
	}
}

// listPackages lists the packages of all Go modules.
func listPackages(t *testing.T, flags ...string) string {
	t.Helper()
	return tool(t, root, nil, "go", slices.Concat([]string{"list"}, flags, []string{"./...", "./clients/go/...", "./clients/go/otelmillrace"})...)
}

// The directly required modules are the documented ones.
func TestDependencies(t *testing.T) {
	imported := listPackages(t, "-tags", "testcontainers", "-f", `{{join .Imports "\n"}}{{"\n"}}{{join .TestImports "\n"}}{{"\n"}}{{join .XTestImports "\n"}}`)
	var documented []string
	for _, cell := range all(`(?m)^\| (?:Go[^|]*\| )?(\x60[^|]+\x60) \|`, document(t, "docs/dependencies.md")) {
		documented = append(documented, all("`([^`]+)`", cell)...)
	}
	used := map[string]bool{}
	for _, path := range strings.Fields(imported) {
		host, _, _ := strings.Cut(path, "/")
		if !strings.Contains(host, ".") || strings.HasPrefix(path, "github.com/millrace-jobs/") {
			continue
		}
		i := slices.IndexFunc(documented, func(module string) bool { return path == module || strings.HasPrefix(path, module+"/") })
		require.GreaterOrEqual(t, i, 0, "%s is not documented", path)
		used[documented[i]] = true
	}
	release := document(t, "scripts/release/go.mod") // what a release needs is in a module of its own
	for _, module := range documented {
		require.True(t, used[module] || strings.Contains(release, module+" "), "%s is documented, and imported nowhere", module)
	}
}

// Every package has a package comment.
func TestPackagesHaveComments(t *testing.T) {
	for line := range strings.Lines(listPackages(t, "-f", "{{.ImportPath}}\t{{.Doc}}")) {
		path, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		require.NotEmpty(t, doc, "%s has no package comment", path)
	}
}

// The documented members of an item's `millrace` are those of the contract.
func TestItems(t *testing.T) {
	_, table, found := strings.Cut(document(t, "docs/api/lists.md"), "\n| member of `millrace` | |\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for _, cell := range all("(?m)^\\| (`[^|]+`) \\|", table) {
		named = append(named, all("`(\\w+)`", cell)...)
	}
	members := contract(t).Components.Schemas["Item"].Value.Properties["millrace"].Value.Properties
	require.ElementsMatch(t, slices.Collect(maps.Keys(members)), named)
}

// The API's table and the code have the same error codes.
func TestStatusCodes(t *testing.T) {
	codes := all(`(?:=|:) +"([a-z_]+)"`, sources(t, "httpapi/problem", "problem.go"))
	require.Equal(t, codes, all("(?m)^\\| \\d+ \\| `(\\w+)` \\|", document(t, "docs/api.md")))
}

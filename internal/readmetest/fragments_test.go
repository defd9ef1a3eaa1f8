package readmetest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fragment is a block in a client's README that names no file: a part of a program.
type fragment struct {
	line int // in the README
	text string
}

// fragmentsOf returns the fragments of a README, by their language.
func fragmentsOf(t *testing.T, readme string) map[string][]fragment {
	t.Helper()
	page, found := document(t, readme), map[string][]fragment{}
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		if info := page[at[2]:at[3]]; !named.MatchString(info) {
			found[info] = append(found[info], fragment{1 + strings.Count(page[:at[4]], "\n"), page[at[4]:at[5]]})
		}
	}
	return found
}

// The compiler or the type checker of each language accepts the fragments in the README of its
// client, with the library as it is. Ruby has neither, so it runs them. A directory of
// testdata/fragments has the names that the fragments of a language use and do not define.
func TestFragments(t *testing.T) {
	for language, check := range map[string]func(t *testing.T, readme, folder string, found map[string][]fragment){
		"go": goFragments, "javascript": javascriptFragments, "java": javaFragments, "python": pythonFragments, "ruby": rubyFragments,
	} {
		t.Run(language, func(t *testing.T) {
			readme, folder := "clients/"+language+"/README.md", t.TempDir()
			require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Join("testdata", "fragments", language))))
			found := fragmentsOf(t, readme)
			delete(found, "sh")
			delete(found, "text")
			check(t, readme, folder, found)
			require.Empty(t, slices.Collect(maps.Keys(found)), "%s: blocks that no test checks", readme)
		})
	}
}

// take returns the fragments in a language, which the test then has checked.
func take(t *testing.T, found map[string][]fragment, language string) []fragment {
	t.Helper()
	require.NotEmpty(t, found[language])
	defer delete(found, language)
	return found[language]
}

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// goFragments compiles the fragments as functions of a package in the client's module. An overlay
// puts the package there.
func goFragments(t *testing.T, readme, folder string, found map[string][]fragment) {
	in := filepath.Join(root, "clients", "go", "fragments")
	replace := map[string]string{filepath.Join(in, "names.go"): filepath.Join(folder, "names.go")}
	for _, f := range take(t, found, "go") {
		name := fmt.Sprintf("line%d.go", f.line)
		replace[filepath.Join(in, name)] = write(t, folder, name, goFunction(t, f, filepath.Join(root, readme)))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	tool(t, root, nil, "go", "build", "-overlay", write(t, folder, "overlay.json", string(overlay)), "./clients/go/fragments")
}

// goImports are the packages that fragments use.
var goImports = map[string]string{"context": "context", "fmt": "fmt", "millrace": clientModule, "time": "time"}

// goFunction returns a file with the fragment as a function that uses all its variables.
func goFunction(t *testing.T, f fragment, readme string) string {
	t.Helper()
	const begin = "package fragments\n"
	code := fmt.Sprintf("func line%d() {\n//line %s:%d\n%s", f.line, readme, f.line, f.text)
	file, err := parser.ParseFile(token.NewFileSet(), readme, begin+code+"}\n", 0)
	require.NoError(t, err)
	imports := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, is := node.(*ast.SelectorExpr); is {
			if x, is := selector.X.(*ast.Ident); is && goImports[x.Name] != "" {
				imports[x.Name] = true
			}
		}
		return true
	})
	var head, uses strings.Builder
	for name := range imports {
		fmt.Fprintf(&head, "import %s %q\n", name, goImports[name])
	}
	for _, statement := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if assignment, is := statement.(*ast.AssignStmt); is && assignment.Tok == token.DEFINE {
			for _, name := range assignment.Lhs {
				fmt.Fprintf(&uses, "_ = %s\n", name.(*ast.Ident).Name)
			}
		}
	}
	return begin + head.String() + code + uses.String() + "}\n"
}

// javascriptFragments compiles each fragment as a module. What is not TypeScript need not say its
// types.
func javascriptFragments(t *testing.T, _, folder string, found map[string][]fragment) {
	client := filepath.Join(root, "clients", "javascript")
	prepare(t, "clients/javascript/conformance/build")
	modules := filepath.Join(folder, "node_modules")
	require.NoError(t, os.Mkdir(modules, 0o700))
	require.NoError(t, os.Symlink(client, filepath.Join(modules, "millrace-jobs")))
	for _, name := range []string{"@types", "@nestjs"} {
		require.NoError(t, os.Symlink(filepath.Join(client, "node_modules", name), filepath.Join(modules, name)))
	}
	for language, strict := range map[string]string{"js": "false", "ts": "true"} {
		files := []string{"names.d.mts"}
		for _, f := range take(t, found, language) {
			files = append(files, fmt.Sprintf("line%d.mts", f.line))
			write(t, folder, files[len(files)-1], f.text+"export {};\n")
		}
		tsc := []string{"node_modules/typescript/bin/tsc", "--noEmit", "--ignoreConfig", "--target", "es2023", "--lib", "es2024", "--module", "nodenext", "--types", "node", "--experimentalDecorators", "--strict", strict}
		for i, file := range files {
			files[i] = filepath.Join(folder, file)
		}
		tool(t, client, nil, "node", append(tsc, files...)...)
	}
}

// javaFragments compiles the fragments as the methods of a class. Those in XML are dependencies of
// the client.
func javaFragments(t *testing.T, _, folder string, found map[string][]fragment) {
	client := filepath.Join(root, "clients", "java")
	tool(t, client, nil, filepath.Join(root, "scripts", "mvn.sh"), "compile", "dependency:copy-dependencies")
	var class strings.Builder
	class.WriteString("import io.github.millracejobs.*;\nimport io.github.millracejobs.testing.*;\nimport java.time.*;\nimport java.util.*;\n")
	class.WriteString("abstract class Fragments extends Names {\n")
	for _, f := range take(t, found, "java") {
		fmt.Fprintf(&class, "void line%d() throws Exception {\n%s}\n", f.line, f.text)
	}
	class.WriteString("}\n")
	for _, f := range take(t, found, "xml") {
		dependency := strings.TrimSuffix(spaces(f.text), " </dependency>")
		require.Contains(t, spaces(document(t, "clients/java/pom.xml")), dependency, "line %d", f.line)
	}
	files := []string{write(t, folder, "Fragments.java", class.String()), filepath.Join(folder, "Names.java")}
	path := filepath.Join(client, "target", "classes") + ":" + filepath.Join(client, ".build", "lib", "*")
	tool(t, folder, nil, "javac", append([]string{"--release", "17", "-proc:none", "-d", folder, "-cp", path}, files...)...)
}

// spaces returns a text with one space in place of several, and of line ends.
func spaces(text string) string { return strings.Join(strings.Fields(text), " ") }

// pythonFragments lets mypy and pyright check the fragments as async functions, because some of
// them await. pyright also checks a file with wrong calls, all of which it must report.
func pythonFragments(t *testing.T, _, folder string, found map[string][]fragment) {
	var module strings.Builder
	module.WriteString("from names import *\n")
	for _, f := range take(t, found, "python") {
		body := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(f.text, "    $1")
		fmt.Fprintf(&module, "\nasync def line%d() -> None:\n%s", f.line, body)
	}
	client := filepath.Join(root, "clients", "python")
	write(t, folder, "fragments.py", module.String())
	python := filepath.Join(root, ".cache", "python", "bin")
	mypy := filepath.Join(python, "mypy")
	require.FileExists(t, mypy, "make test-python installs it")
	tool(t, client, []string{"MYPYPATH=" + folder}, mypy, "--no-error-summary", filepath.Join(folder, "fragments.py"))
	pyright := filepath.Join(root, ".cache", "pyright", "node_modules", "pyright", "index.js")
	require.FileExists(t, pyright, "make deps installs it")
	tool(t, folder, []string{"PYTHONPATH=" + filepath.Join(client, "src")}, "node", pyright, "--pythonpath", filepath.Join(python, "python"))
}

// rubyFragments runs the fragments.
func rubyFragments(t *testing.T, readme, folder string, found map[string][]fragment) {
	client := filepath.Join(root, "clients", "ruby")
	line := []string{"-w", "-I", filepath.Join(client, "lib"), filepath.Join(folder, "run.rb"), filepath.Join(root, readme)}
	blocks := take(t, found, "ruby")
	for _, f := range blocks {
		line = append(line, write(t, folder, fmt.Sprintf("%d.rb", f.line), f.text))
	}
	require.Equal(t, fmt.Sprintf("%d fragments\n", len(blocks)), tool(t, folder, nil, "ruby", line...))
}

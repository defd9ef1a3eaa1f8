package shapetest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// TestFilesUseEachOtherOneWay requires that no file uses another one that uses it in turn, be it
// through others. So a package can be read from the top down. Packages that are not there yet stand
// in inCircles.
func TestFilesUseEachOtherOneWay(t *testing.T) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly",
		"./broker/...", "./cmd/...", "./httpapi/...", "./scheduler/...", "./streams/...", "./tracker/...", "./view/...", "./wire/...")
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	exports, ours := map[string]string{}, []goPackage{}
	for rest := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := rest.Decode(&p); errors.Is(err, io.EOF) {
			break
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			ours = append(ours, p)
		}
	}
	require.Greater(t, len(ours), 15)
	for _, p := range ours {
		_, name, _ := strings.Cut(p.ImportPath, "/millrace/")
		if found := circles(usesOf(t, p, exports)); len(found) != inCircles[name] {
			t.Errorf("%d files of %s use each other in circles, and inCircles has %d: %s", len(found), name, inCircles[name], strings.Join(found, " "))
		}
	}
}

// usesOf returns which files use which others of a package: what is declared there.
func usesOf(t *testing.T, p goPackage, exports map[string]string) map[string]map[string]bool {
	places := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(places, filepath.Join(p.Dir, name), nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	found := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	imports := importer.ForCompiler(places, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	checked, err := (&types.Config{Importer: imports}).Check(p.ImportPath, places, files, found)
	require.NoError(t, err)
	uses := map[string]map[string]bool{}
	for name, object := range found.Uses {
		from, to := places.Position(name.Pos()).Filename, places.Position(object.Pos()).Filename
		if object.Pkg() != checked || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	return uses
}

// circles returns the files from which a way leads back to them.
func circles(uses map[string]map[string]bool) (all []string) {
	for start := range uses {
		seen, next := map[string]bool{}, []string{start}
		for len(next) > 0 && !seen[start] {
			at := next[len(next)-1]
			next = next[:len(next)-1]
			for to := range uses[at] {
				if !seen[to] {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
		if seen[start] {
			all = append(all, filepath.Base(start))
		}
	}
	return all
}

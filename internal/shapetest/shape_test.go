package shapetest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	mostMethods       = 40
	mostFields        = 15
	longestFunction   = 60
	longestFile       = 400
	longestTest       = 100
	longestTestFile   = 600
	widestComment     = 100
	mostWideComments  = 0.01 // of all lines of comments
	tab               = 4
	minimumOfFindings = 100 // of files, so that a walk through nothing does not pass
)

// TestShape compares the code with the limits. Configurations and messages may have more fields:
// their names are in listsOfFields.
func TestShape(t *testing.T) {
	found := survey(t)
	require.Greater(t, found.files, minimumOfFindings)
	for _, name := range slices.Sorted(maps.Keys(found.sizes)) {
		allowed, known := exceptions[name]
		if !known {
			t.Errorf("%s is %d: split it", name, found.sizes[name])
			continue
		}
		require.LessOrEqual(t, found.sizes[name], allowed, "%s has grown", name)
	}
	for name := range exceptions {
		require.Contains(t, found.sizes, name, "this exception is no longer needed")
	}
}

// TestWidthOfComments allows a few wide lines, for links and tables.
func TestWidthOfComments(t *testing.T) {
	found := survey(t)
	require.Greater(t, found.comments, 1000)
	share := float64(len(found.wide)) / float64(found.comments)
	require.LessOrEqual(t, share, mostWideComments, "%d of %d lines of comments are wider than %d columns, such as\n%s",
		len(found.wide), found.comments, widestComment, strings.Join(found.wide[:min(len(found.wide), 20)], "\n"))
}

// shape is what was found in the tree.
type shape struct {
	files    int
	sizes    map[string]int // what is over its limit, by kind and name
	methods  map[string]int // of all types
	comments int
	wide     []string // places of wide comments
}

// note keeps a size that is over its limit.
func (s *shape) note(size, limit int, format string, args ...any) {
	if size > limit {
		s.sizes[fmt.Sprintf(format, args...)] = size
	}
}

// survey reads all Go files of the repository.
func survey(t *testing.T) *shape {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	s := &shape{sizes: map[string]int{}, methods: map[string]int{}}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			return s.read(root, path)
		}
		return nil
	})
	require.NoError(t, err)
	for name, n := range s.methods {
		s.note(n, mostMethods, "methods of %s", name)
	}
	return s
}

// read takes in one file.
func (s *shape) read(root, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go")
	s.files++
	s.readComments(name, text)
	if ast.IsGenerated(file) {
		return nil
	}
	functions, whole := longestFunction, longestFile
	if test {
		functions, whole = longestTest, longestTestFile
	}
	s.note(bytes.Count(text, []byte("\n")), whole, "file %s", name)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			lines := files.Position(d.End()).Line - files.Position(d.Pos()).Line + 1
			s.note(lines, functions, "function %s in %s", d.Name.Name, name)
			if d.Recv != nil && !test {
				s.methods[filepath.Dir(name)+"."+receiver(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			if !test {
				s.readTypes(name, d)
			}
		}
	}
	return nil
}

func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return "?"
}

// readTypes counts the fields of structs.
func (s *shape) readTypes(name string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		typed, is := spec.(*ast.TypeSpec)
		if !is {
			continue
		}
		structure, is := typed.Type.(*ast.StructType)
		if !is {
			continue
		}
		n := 0
		for _, field := range structure.Fields.List {
			n += max(1, len(field.Names))
		}
		if called := filepath.Dir(name) + "." + typed.Name.Name; !slices.Contains(listsOfFields, called) {
			s.note(n, mostFields, "fields of %s", called)
		}
	}
}

// readComments counts lines that are comments, and those that are too wide.
func (s *shape) readComments(name string, text []byte) {
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			continue
		}
		s.comments++
		if len([]rune(strings.ReplaceAll(line, "\t", strings.Repeat(" ", tab)))) > widestComment {
			s.wide = append(s.wide, fmt.Sprintf("%s:%d", name, i+1))
		}
	}
}

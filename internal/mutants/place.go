package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// code is the code below a folder. Each package is read once.
type code struct {
	root     string
	packages map[string]*goPackage
}

func codeIn(root string) *code { return &code{root, map[string]*goPackage{}} }

// goPackage has the declarations of one package by their names. The name of a method has that of
// its type before it.
type goPackage struct{ declarations map[string][]*place }

// place is a declaration: a function, a method, a variable, or a type.
type place struct {
	*goPackage
	path    string // of its file
	text    []byte // of its file
	files   *token.FileSet
	imports map[string]bool // of its file
	node    ast.Node
	locals  map[string]bool // the names that it declares itself
}

// find finds a declaration. It is named as for `go doc`: scheduler/ledger.Ledger.Send is the method
// Send of the type Ledger in the folder scheduler/ledger.
func (c *code) find(name string) (*place, error) {
	folder, declared, _ := strings.Cut(name, ".")
	if c.packages[folder] == nil {
		p, err := read(filepath.Join(c.root, filepath.FromSlash(folder)))
		if err != nil {
			return nil, err
		}
		c.packages[folder] = p
	}
	found := c.packages[folder].declarations[declared]
	if len(found) != 1 {
		return nil, fmt.Errorf("%w: %d declarations of %s, not 1", errRewrite, len(found), name)
	}
	found[0].locals = localsOf(found[0].node)
	return found[0], nil
}

func read(folder string) (*goPackage, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &goPackage{map[string][]*place{}}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(filepath.Base(path), "model_") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.declare(file, place{goPackage: p, path: path, text: text, files: files, imports: importsOf(file)})
	}
	return p, nil
}

func importsOf(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, i := range file.Imports {
		if i.Name != nil {
			names[i.Name.Name] = true
			continue
		}
		name, _ := strconv.Unquote(i.Path.Value) // the parser has read it
		names[path.Base(name)] = true
	}
	return names
}

// declare notes the declarations of a file.
func (p *goPackage) declare(file *ast.File, in place) {
	note := func(name string, node ast.Node) {
		at := in
		at.node = node
		p.declarations[name] = append(p.declarations[name], &at)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			note(name, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						note(n.Name, s)
					}
				case *ast.TypeSpec:
					note(s.Name.Name, s)
				}
			}
		}
	}
}

// declared reports whether a name means the same in the whole file.
func (p *place) declared(name string) bool {
	return len(p.declarations[name]) > 0 || p.imports[name] || types.Universe.Lookup(name) != nil || name == "_"
}

func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return "?"
}

// localsOf returns the names of the parameters and variables that a function declares.
func localsOf(node ast.Node) map[string]bool {
	names := map[string]bool{}
	declare := func(e ast.Expr) {
		if id, is := e.(*ast.Ident); is && id.Name != "_" {
			names[id.Name] = true
		}
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType, *ast.InterfaceType:
			return false
		case *ast.Field:
			for _, id := range n.Names {
				declare(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					declare(e)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				declare(n.Key)
				declare(n.Value)
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				declare(id)
			}
		}
		return true
	})
	return names
}

var errRewrite = errors.New("rewrite the variant")

// mutated returns the file that a variant changes, and its text with the change.
func (c *code) mutated(v variant) (file string, text []byte, err error) {
	in, err := c.find(v.in)
	if err != nil {
		return "", nil, err
	}
	from, err := parse(v.from)
	if err != nil {
		return "", nil, err
	}
	to, err := parse(v.to)
	if err != nil {
		return "", nil, err
	}
	found := from.find(in)
	if len(found) != 1 {
		return "", nil, fmt.Errorf("%w: %s has %q %d times, not once", errRewrite, v.in, v.from, len(found))
	}
	change, err := to.as(found[0], in)
	if err != nil {
		return "", nil, err
	}
	text = slices.Concat(in.text[:found[0].from], []byte(change), in.text[found[0].to:])
	_, err = parser.ParseFile(token.NewFileSet(), in.path, text, parser.SkipObjectResolution)
	return in.path, text, err
}

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// pattern is a piece of code: an expression, statements, the head of a statement with its bracket,
// a case, or members of a literal with their names.
type pattern struct {
	text   string
	nodes  []ast.Node
	expr   bool
	head   bool
	offset func(token.Pos) int // in the text
}

// parse takes a text for what it can be.
func parse(text string) (*pattern, error) {
	if p, err := parseAs(text, "_ = (", ")"); err == nil {
		p.nodes, p.expr = []ast.Node{p.nodes[0].(*ast.AssignStmt).Rhs[0].(*ast.ParenExpr).X}, true
		return p, nil
	}
	if p, err := parseAs(text, "_ = p{", "}"); err == nil {
		p.nodes = nodesOf(p.nodes[0].(*ast.AssignStmt).Rhs[0].(*ast.CompositeLit).Elts)
		return p, nil
	}
	p, err := parseAs(text, "", "")
	if err == nil {
		return p, nil
	}
	if p, err := parseAs(text, "", "\n}"); err == nil {
		first, _ := headOf(p.nodes[0])
		p.nodes, p.head = []ast.Node{first}, true
		return p, nil
	}
	if p, err := parseAs(text, "switch {\n", "\n}"); err == nil {
		p.nodes = nodesOf(p.nodes[0].(*ast.SwitchStmt).Body.List)
		if clause := p.nodes[0].(*ast.CaseClause); len(clause.Body) == 0 {
			p.head = true
		}
		return p, nil
	}
	return nil, err
}

// parseAs parses a text within a function.
func parseAs(text, before, after string) (*pattern, error) {
	before = "package p\n\nfunc _() {\n" + before
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", before+text+after+"\n}\n", parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	nodes := nodesOf(file.Decls[0].(*ast.FuncDecl).Body.List)
	return &pattern{text: text, nodes: nodes, offset: func(at token.Pos) int { return files.Position(at).Offset - len(before) }}, nil
}

func nodesOf[N ast.Node](list []N) []ast.Node {
	all := make([]ast.Node, len(list))
	for i, n := range list {
		all[i] = n
	}
	return all
}

// headOf returns a statement or case without its body, and where its head ends.
func headOf(n ast.Node) (ast.Node, token.Pos) {
	switch n := n.(type) {
	case *ast.IfStmt:
		h := *n
		h.Body, h.Else = &ast.BlockStmt{}, nil
		return &h, n.Body.Lbrace + 1
	case *ast.ForStmt:
		h := *n
		h.Body = &ast.BlockStmt{}
		return &h, n.Body.Lbrace + 1
	case *ast.RangeStmt:
		h := *n
		h.Body = &ast.BlockStmt{}
		return &h, n.Body.Lbrace + 1
	case *ast.CaseClause:
		h := *n
		h.Body = nil
		return &h, n.Colon + 1
	}
	return nil, token.NoPos
}

// match is one piece of the code that looks like a pattern.
type match struct {
	from, to int               // in the text of the file
	names    map[string]string // what a name of the pattern is called there
}

// find returns all pieces of the code that look like the pattern. The names of locals do not
// matter, if one name is always the same one.
func (p *pattern) find(in *place) (all []match) {
	try := func(code []ast.Node, from, to token.Pos) {
		m := &matching{in, map[string]string{}, map[string]string{}}
		found := match{in.files.Position(from).Offset, in.files.Position(to).Offset, m.names}
		known := slices.ContainsFunc(all, func(o match) bool { return o.from == found.from && o.to == found.to })
		if !known && m.same(reflect.ValueOf(p.nodes), reflect.ValueOf(code)) {
			all = append(all, found)
		}
	}
	ast.Inspect(in.node, func(n ast.Node) bool {
		if h, end := headOf(n); p.head && h != nil {
			try([]ast.Node{h}, n.Pos(), end)
		}
		for _, list := range listsIn(n) {
			for i := 0; !p.head && len(p.nodes) > 0 && i+len(p.nodes) <= len(list); i++ {
				part := list[i : i+len(p.nodes)]
				try(part, part[0].Pos(), part[len(part)-1].End())
			}
		}
		return true
	})
	return all
}

// listsIn returns the lists that are directly in a node. An expression is a list of its own, and so
// is a statement before a condition.
func listsIn(n ast.Node) (all [][]ast.Node) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		all = append(all, nodesOf(n.List))
	case *ast.CaseClause:
		all = append(all, nodesOf(n.Body))
	case *ast.CommClause:
		all = append(all, nodesOf(n.Body))
	case *ast.CompositeLit:
		all = append(all, nodesOf(n.Elts))
	case *ast.IfStmt:
		if n.Init != nil {
			all = append(all, []ast.Node{n.Init})
		}
	}
	if e, is := n.(ast.Expr); is {
		all = append(all, []ast.Node{e})
	}
	return all
}

// matching compares a pattern with code.
type matching struct {
	in             *place
	names, reverse map[string]string // by the names of the pattern, and of the code
}

func (m *matching) same(p, c reflect.Value) bool {
	if p.Kind() == reflect.Interface {
		p, c = p.Elem(), c.Elem()
	}
	if p.IsValid() != c.IsValid() || p.IsValid() && p.Type() != c.Type() {
		return false
	}
	if !p.IsValid() {
		return true
	}
	switch value := p.Interface().(type) {
	case *ast.Ident:
		return m.sameName(value, c.Interface().(*ast.Ident))
	case *ast.SelectorExpr: // what is selected is no local
		other := c.Interface().(*ast.SelectorExpr)
		return value.Sel.Name == other.Sel.Name && m.same(reflect.ValueOf(&value.X).Elem(), reflect.ValueOf(&other.X).Elem())
	case token.Pos: // that of an ellipsis, for example, says that it is there
		return value.IsValid() == c.Interface().(token.Pos).IsValid()
	case *ast.CommentGroup:
		return true
	}
	switch p.Kind() {
	case reflect.Pointer:
		return p.IsNil() == c.IsNil() && (p.IsNil() || m.same(p.Elem(), c.Elem()))
	case reflect.Struct:
		for i := range p.NumField() {
			if !m.same(p.Field(i), c.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		for i := range min(p.Len(), c.Len()) {
			if !m.same(p.Index(i), c.Index(i)) {
				return false
			}
		}
		return p.Len() == c.Len()
	}
	return p.Equal(c)
}

func (m *matching) sameName(p, c *ast.Ident) bool {
	if p == nil || c == nil {
		return p == c
	}
	if !m.in.locals[c.Name] || m.in.declared(p.Name) && !m.in.locals[p.Name] {
		return p.Name == c.Name
	}
	name, known := m.names[p.Name]
	other, taken := m.reverse[c.Name]
	m.names[p.Name], m.reverse[c.Name] = c.Name, p.Name
	return (!known || name == c.Name) && (!taken || other == p.Name)
}

// as returns the text of a pattern for the place of a match, whose locals may have other names.
func (p *pattern) as(m match, in *place) (string, error) {
	own := map[string]bool{}
	for _, n := range p.nodes {
		maps.Copy(own, localsOf(n))
	}
	var b strings.Builder
	var unknown []string
	done := 0
	for _, n := range p.nodes {
		inspectNames(n, func(id *ast.Ident) {
			name, bound := m.names[id.Name]
			switch {
			case bound:
				at := p.offset(id.Pos())
				b.WriteString(p.text[done:at] + name)
				done = at + len(id.Name)
			case !own[id.Name] && !in.declared(id.Name):
				unknown = append(unknown, id.Name)
			}
		})
	}
	if len(unknown) > 0 {
		return "", fmt.Errorf("%q has %s, and what it replaces has not", p.text, strings.Join(unknown, ", "))
	}
	b.WriteString(p.text[done:])
	if p.expr {
		return "(" + b.String() + ")", nil
	}
	return b.String(), nil
}

// inspectNames visits the names in a node that may be those of locals, in their order.
func inspectNames(n ast.Node, visit func(*ast.Ident)) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			inspectNames(n.X, visit)
			return false
		case *ast.KeyValueExpr: // its key is a member
			inspectNames(n.Value, visit)
			return false
		case *ast.Ident:
			visit(n)
		}
		return true
	})
}

package readmetest

import (
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sources of each client have the names in the table of docs/clients.md.
func TestAPITable(t *testing.T) {
	head, rows := apiTable(t)
	require.Greater(t, len(rows), 40)
	apis := map[string]api{
		"Go": goAPI(t, "clients/go", "clients/go/millracetest"),
		"Python": textAPI(t, "clients/python/src", ".py",
			`^class (\w+)(?:\((.*)\))?`, `^\s+(?:async )?def NAME\(|^\s+NAME:|^(?:async )?def NAME\(`),
		"Ruby": textAPI(t, "clients/ruby/lib", ".rb",
			`^\s*(?:class|module) (\w+)(?: < (\w+))?`, `^\s+def (?:self\.)?NAME(?:[^\w?]|$)|^\s+attr_\w+ .*:NAME\b|^\s+(?:class|module) NAME\b`),
		"JavaScript": textAPI(t, "clients/javascript", ".ts",
			`^(?:export |declare |abstract )*(?:class|interface|type|function) (\w+)(?:<.*?>)?(?: extends (\w+))?`,
			`^\s+(?:public |readonly |async |get |static |declare |\*)*NAME\??\s*[<(:;]`),
		"Java": textAPI(t, "clients/java/src/main", ".java",
			`^\s*(?:public |abstract |static |final )*(?:class|interface|record) (\w+)(?:<.*?>)?(?:\(.*\))?(?: extends (\w+))?(?: implements (\w+))?`,
			`^\s+(?:public |default |static )*(?:<.*?> )?[\w.<>\[\], ?]+ NAME\(`),
	}
	for _, row := range rows {
		for i, cell := range row[1:] {
			language := head[i+1]
			if cell == "—" {
				continue
			}
			for name := range strings.SplitSeq(cell, ", ") {
				require.Regexp(t, "^`[^`]+`$", name, "%s of %s", row[0], language)
				require.True(t, apis[language].has(strings.Trim(name, "`")), "docs/clients.md names %s, which the %s client does not have", name, language)
			}
		}
	}
	for language, a := range apis {
		for _, name := range []string{"Nonsense", "Worker.nonsense", "Nonsense.enqueue", "Inspector.enqueue", "Inspector.Enqueue"} {
			require.False(t, a.has(name), "%s in %s", name, language)
		}
	}
}

// apiTable returns the languages of the table, and the names in each row.
func apiTable(t *testing.T) (head []string, rows [][]string) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "clients.md"))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "### API by language\n")
	require.True(t, found)
	section, _, _ := strings.Cut(after, "\n## ")
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		require.Len(t, cells, 6, line)
		if head == nil {
			head = cells
			continue
		}
		rows = append(rows, cells)
	}
	return head, rows
}

// api reports whether a client has a name: of a type or function, or of a member, as type, dot,
// member.
type api interface{ has(name string) bool }

// declared is the API of a Go package.
type declared map[string]bool

func (d declared) has(name string) bool { return d[name] }

func goAPI(t *testing.T, dirs ...string) declared {
	d := declared{}
	for _, dir := range dirs {
		for _, file := range goFiles(t, token.NewFileSet(), dir) {
			for _, decl := range file.Decls {
				d.add(file.Name.Name, decl)
			}
		}
	}
	d.promote()
	return d
}

// embeds stands between a type and one that it embeds.
const embeds = " embeds "

// promote gives each type the members of those that it embeds.
func (d declared) promote() {
	for fact := range maps.Clone(d) {
		outer, inner, is := strings.Cut(fact, embeds)
		if !is {
			continue
		}
		for name := range maps.Clone(d) {
			if member, of := strings.CutPrefix(name, inner+"."); of {
				d[outer+"."+member] = true
			}
		}
	}
}

func (d declared) add(pkg string, decl ast.Decl) {
	name := func(n string) { d[n], d[pkg+"."+n] = true, true }
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			name(decl.Name.Name)
			return
		}
		receiver := decl.Recv.List[0].Type
		if star, is := receiver.(*ast.StarExpr); is {
			receiver = star.X
		}
		if id, is := receiver.(*ast.Ident); is {
			d[id.Name+"."+decl.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					name(id.Name)
				}
			case *ast.TypeSpec:
				name(spec.Name.Name)
				if s, is := spec.Type.(*ast.StructType); is {
					for _, field := range s.Fields.List {
						for _, id := range field.Names {
							d[spec.Name.Name+"."+id.Name] = true
						}
						if id, is := field.Type.(*ast.Ident); is && len(field.Names) == 0 {
							d[spec.Name.Name+embeds+id.Name] = true
						}
					}
				}
			}
		}
	}
}

// described is the API of a client with sources that are read as text. Each type has its own text
// and that of its supertypes.
type described struct {
	types  map[string]*typeText
	member string
}

type typeText struct {
	text  string
	above []string
}

func (d described) has(name string) bool {
	kind, member, is := strings.Cut(name, ".")
	if !is {
		return d.types[kind] != nil
	}
	for _, part := range d.withAbove(kind, 0) {
		if regexp.MustCompile("(?m)" + strings.ReplaceAll(d.member, "NAME", regexp.QuoteMeta(member))).MatchString(part) {
			return true
		}
	}
	return strings.EqualFold(kind, "testing") && d.types[member] != nil
}

func (d described) withAbove(kind string, depth int) (parts []string) {
	found := d.types[kind]
	if found == nil || depth > 3 {
		return nil
	}
	parts = append(parts, found.text)
	for _, above := range found.above {
		parts = append(parts, d.withAbove(above, depth+1)...)
	}
	return parts
}

// textAPI reads sources. The text of a type ends with the first line that is not indented more than
// its declaration.
func textAPI(t *testing.T, dir, suffix, declaration, member string) described {
	d := described{types: map[string]*typeText{}, member: member}
	declares := regexp.MustCompile(declaration)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", "test", "examples"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		text, err := os.ReadFile(path)
		d.read(string(text), declares, filepath.Base(path))
		return err
	}))
	return d
}

func (d described) read(text string, declares *regexp.Regexp, file string) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		m := declares.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		end := i + 1
		for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || indent(lines[end]) > indent(line)) {
			end++
		}
		part := d.types[m[1]]
		if part == nil {
			part = &typeText{}
			d.types[m[1]] = part
		}
		part.text += strings.Join(lines[i+1:end], "\n") + "\n"
		for _, above := range m[2:] {
			if above != "" {
				part.above = append(part.above, above)
			}
		}
	}
	// A module has functions.
	if module, is := strings.CutSuffix(file, ".py"); is && d.types[module] == nil {
		d.types[module] = &typeText{text: text}
	}
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

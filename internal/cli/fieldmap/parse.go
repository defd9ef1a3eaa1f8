package fieldmap

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kind is what values a field takes.
type kind int

const (
	anyValue kind = iota
	text          // a number becomes a text
	number
	moment // a time, in one of the units
	trace  // a text, or a list of its lines
)

// known are the fields of a job, in the order in which they are written. Those from at on say where
// the job goes and how it failed.
var known = []struct {
	name string
	kind kind
}{
	{"jid", text}, {"class", text}, {"args", anyValue}, {"queue", text}, {"priority", number}, {"retry", anyValue}, {"retry_count", number},
	{"expires_at", moment}, {"dead", anyValue}, {"tags", anyValue}, {"timeout", number}, {"created_at", moment}, {"enqueued_at", moment},
	{"at", moment}, {"retry_at", moment}, {"died_at", moment},
	{"failed_at", moment}, {"error_class", text}, {"error_message", text}, {"backtrace", trace},
}

// own is the key under which a map has members that Millrace does not read.
const own = "fields"

// Map makes jobs of objects.
type Map struct {
	fields []field
}

// field is one member of the job, or of an object in it.
type field struct {
	name string
	kind kind
	from source
	seen bool // an object had a value for it
}

// source says where a value comes from: a path, a constant, a list or an object of other sources.
type source struct {
	path     string // as the map has it, for errors
	paths    []path // the first with a value counts
	constant string // JSON
	list     []source
	object   []field

	fallback string // JSON that replaces a missing value
	prefix   string
	unit     string
	scale    *scale
	parse    bool // a text is JSON
}

// path is names and indexes that lead to a value. An empty path is the object itself.
type path []string

// scale maps a range of numbers to the priorities.
type scale struct{ low, high float64 }

// whole is the path of the object itself.
const whole = "."

// Parse reads a map file.
func Parse(file []byte) (*Map, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(file, &document); err != nil {
		return nil, fmt.Errorf("the map is not valid YAML: %w", err)
	}
	if len(document.Content) == 0 {
		return nil, errors.New("the map is empty: it needs at least the field class")
	}
	m := &Map{}
	err := eachMember(document.Content[0], m.add)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(m.fields, func(f field) bool { return f.name == "class" }) {
		return nil, errors.New(`the map has no field class: add, for example, "class: job_class" or "class: {const: SendEmail}"`)
	}
	slices.SortStableFunc(m.fields, func(a, b field) int { return place(a.name) - place(b.name) })
	return m, nil
}

// place returns where a field stands in the job: members of the owner come last.
func place(name string) int {
	for i := range known {
		if known[i].name == name {
			return i
		}
	}
	return len(known)
}

func (m *Map) add(name string, value *yaml.Node) error {
	if name == own {
		return eachMember(value, func(name string, value *yaml.Node) error {
			if place(name) < len(known) || name == "millrace" || name == "job" || name == "type" {
				return at(value, "%s may not contain %s: Millrace reads this member, so name it outside of %s", own, name, own)
			}
			return m.append(name, anyValue, value)
		})
	}
	i := place(name)
	if i == len(known) {
		return at(value, "a job has no field %q: use %s, or %s for members of your own", name, strings.Join(names(), ", "), own)
	}
	return m.append(name, known[i].kind, value)
}

func names() (all []string) {
	for i := range known {
		all = append(all, known[i].name)
	}
	return all
}

func (m *Map) append(name string, k kind, value *yaml.Node) error {
	from, err := parseSource(name, k, value)
	m.fields = append(m.fields, field{name: name, kind: k, from: from})
	return err
}

// at returns an error that names a line of the map.
func at(node *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d of the map: "+format, append([]any{node.Line}, args...)...)
}

// eachMember calls fn for each member of a YAML mapping.
func eachMember(node *yaml.Node, fn func(name string, value *yaml.Node) error) error {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return at(node, "this must be a table of names and values")
	}
	names := map[string]bool{}
	for pair := range slices.Chunk(node.Content, 2) {
		name, value := pair[0].Value, pair[1]
		if names[name] {
			return at(pair[0], "%s stands here for the second time", name)
		}
		names[name] = true
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if err := fn(name, value); err != nil {
			return err
		}
	}
	return nil
}

func parseSource(name string, k kind, node *yaml.Node) (s source, err error) {
	switch node.Kind {
	case yaml.ScalarNode:
		err = s.setPath(node)
	case yaml.SequenceNode:
		s.list = []source{}
		for _, item := range node.Content {
			one, err := parseSource(name, anyValue, item)
			if err != nil {
				return s, err
			}
			s.list = append(s.list, one)
		}
	default:
		err = eachMember(node, func(option string, value *yaml.Node) error { return s.set(name, k, option, value) })
		if err == nil && s.sources() != 1 {
			err = at(node, "%s has %d sources: set one of from, const and object", name, s.sources())
		}
	}
	return s, err
}

func (s *source) sources() (n int) {
	for _, given := range []bool{s.paths != nil, s.constant != "", s.object != nil} {
		if given {
			n++
		}
	}
	return n
}

// set reads one option of a source.
func (s *source) set(name string, k kind, option string, value *yaml.Node) (err error) {
	switch option {
	case "from":
		return s.setPath(value)
	case "const":
		s.constant, err = toJSON(value)
	case "default":
		s.fallback, err = toJSON(value)
	case "prefix":
		if s.prefix = value.Value; k != text {
			err = at(value, "only a text has a prefix, and %s is none", name)
		}
	case "json":
		if s.parse = value.Value == "true"; !s.parse && value.Value != "false" {
			err = at(value, "json is true or false: true reads a text as JSON")
		}
	case "unit":
		if s.unit = value.Value; k != moment || s.unit != unitSeconds && s.unit != unitMillis && s.unit != unitISO {
			err = at(value, "unit is s, ms or iso, and only times have one")
		}
	case "range":
		s.scale, err = parseScale(name, value)
	case "object":
		s.object = []field{}
		err = eachMember(value, func(name string, value *yaml.Node) error {
			from, err := parseSource(name, anyValue, value)
			s.object = append(s.object, field{name: name, from: from})
			return err
		})
	default:
		err = at(value, "%s has no option %q: use from, const, object, default, prefix, json, unit or range", name, option)
	}
	return err
}

func parseScale(name string, node *yaml.Node) (*scale, error) {
	if name != "priority" || node.Kind != yaml.SequenceNode || len(node.Content) != 2 {
		return nil, at(node, "range is [lowest, highest], such as [0, 100], and only priority has one")
	}
	low, err := strconv.ParseFloat(node.Content[0].Value, 64)
	if err != nil {
		return nil, at(node, "%q is no number", node.Content[0].Value)
	}
	high, err := strconv.ParseFloat(node.Content[1].Value, 64)
	if err != nil {
		return nil, at(node, "%q is no number", node.Content[1].Value)
	}
	if low == high {
		return nil, at(node, "a range needs two different numbers")
	}
	return &scale{low, high}, nil
}

// setPath reads a path, or a list of paths.
func (s *source) setPath(node *yaml.Node) error {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	for _, one := range nodes {
		p, err := parsePath(one)
		if err != nil {
			return err
		}
		s.paths = append(s.paths, p)
		s.path = strings.TrimPrefix(s.path+" or "+one.Value, " or ")
	}
	if s.paths == nil {
		return at(node, "this list needs a path")
	}
	return nil
}

// parsePath reads names and indexes with dots between them. A dot in a name has a backslash.
func parsePath(node *yaml.Node) (path, error) {
	if node.Kind != yaml.ScalarNode || node.Value == "" {
		return nil, at(node, "a path is names and indexes with dots between them, such as payload.args.0")
	}
	if node.Value == whole {
		return path{}, nil
	}
	steps := splitPath(node.Value)
	if slices.Contains(steps, "") {
		return nil, at(node, "the path %q has an empty step: write a backslash before a dot that belongs to a name", node.Value)
	}
	return steps, nil
}

func splitPath(text string) (steps path) {
	var step strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			step.WriteByte(text[i])
		case c == '.':
			steps = append(steps, step.String())
			step.Reset()
		default:
			step.WriteByte(c)
		}
	}
	return append(steps, step.String())
}

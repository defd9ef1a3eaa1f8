package output

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
)

// Result is the flag that chooses the form of a command's result.
type Result struct {
	Output string `short:"o" enum:"table,wide,json,yaml,csv,ndjson" default:"${output}" placeholder:"FORM" help:"Form of the result: table, wide (a table with all columns, nothing cut), json, yaml, csv or ndjson (${output})."`
}

// Forms of a result. The table is the default.
const (
	formWide   = "wide"
	FormJSON   = "json"
	FormYAML   = "yaml"
	FormCSV    = "csv"
	FormNDJSON = "ndjson"
)

// Printer prints a command's result in one form.
type Printer struct {
	w     io.Writer
	form  string
	now   time.Time
	width int // of the terminal; 0 if there is none, or if nothing is to be cut
	color bool
}

// Printer returns a printer of the form that was chosen.
func (r *Result) Printer(s Streams) *Printer {
	p := NewPrinter(s.Out, s, time.Now())
	if p.form = r.Output; p.form == formWide {
		p.width = 0
	}
	return p
}

// NewPrinter returns a printer of tables that writes to w what the terminal of s can show.
func NewPrinter(w io.Writer, s Streams, now time.Time) *Printer {
	return &Printer{w: w, now: now, width: s.Width(), color: s.color()}
}

// Structured reports whether the API's answer is printed with all its members.
func (p *Printer) Structured() bool {
	return p.form == FormJSON || p.form == FormYAML || p.form == FormNDJSON
}

// ForPeople reports whether sentences may stand beside the result.
func (p *Printer) ForPeople() bool { return !p.Structured() && p.form != FormCSV }

// Note prints a line for people.
func (p *Printer) Note(format string, args ...any) error {
	if !p.ForPeople() {
		return nil
	}
	_, err := fmt.Fprintf(p.w, format+"\n", args...)
	return err
}

// Answer prints JSON with all its members.
func (p *Printer) Answer(body []byte) error {
	if !json.Valid(body) {
		return errors.New("the sidecar's answer is no JSON")
	}
	switch p.form {
	case FormYAML:
		return printYAML(p.w, body)
	case FormNDJSON:
		return printLines(p.w, body)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, body, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.w, indented.String())
	return err
}

// Update prints one of a series of answers: all of it for programs, when it came and what it is
// about for others.
func (p *Printer) Update(body string, at time.Time, about string) error {
	switch p.form {
	case FormYAML:
		if _, err := fmt.Fprintln(p.w, "---"); err != nil {
			return err
		}
		return p.Answer([]byte(body))
	case FormJSON:
		return p.Answer([]byte(body))
	case FormNDJSON:
		_, err := fmt.Fprintln(p.w, body)
		return err
	case FormCSV:
		return csv.NewWriter(p.w).WriteAll([][]string{{at.Format(time.RFC3339), about}})
	}
	return p.Note("%s  %s", at.Format(humantime.WithZone), about)
}

// Fields are the members of a JSON object.
type Fields map[string]any

// JSON returns the object, and removes members that are empty strings.
func (f Fields) JSON() []byte {
	maps.DeleteFunc(f, func(_ string, v any) bool { return v == "" })
	body, err := json.Marshal(f)
	if err != nil { // texts and numbers
		panic(err)
	}
	return body
}

// Done reports what an action has changed: a sentence for people, the fields for programs.
func (p *Printer) Done(changed Fields, format string, args ...any) error {
	switch {
	case p.Structured():
		return p.Answer(changed.JSON())
	case p.form == FormCSV:
		var names, values []string
		gjson.ParseBytes(changed.JSON()).ForEach(func(name, value gjson.Result) bool {
			names, values = append(names, name.String()), append(values, value.String())
			return true
		})
		return csv.NewWriter(p.w).WriteAll([][]string{names, values})
	}
	return p.Note(format, args...)
}

// printLines prints each item of a list on a line of its own, and an answer that is no list on one.
func printLines(w io.Writer, body []byte) error {
	answer := gjson.ParseBytes(body)
	items := []gjson.Result{answer}
	if list := answer.Get("items"); list.IsArray() {
		items = list.Array()
	} else if answer.IsArray() {
		items = answer.Array()
	}
	var lines bytes.Buffer
	for _, item := range items {
		if err := json.Compact(&lines, []byte(item.Raw)); err != nil {
			return err
		}
		lines.WriteByte('\n')
	}
	_, err := w.Write(lines.Bytes())
	return err
}

// Facts prints all that is known of one thing: a line for each member, with the names of the outer
// members in front.
func (p *Printer) Facts(body []byte) error {
	if p.Structured() {
		return p.Answer(body)
	}
	if !json.Valid(body) {
		return errors.New("the sidecar's answer cannot be read: it is no JSON")
	}
	t := &Table{Columns: []Column{Plain("FIELD"), Fact("VALUE")}, Bare: true}
	t.AddFacts("", gjson.ParseBytes(body))
	return p.Table(t)
}

// AddFacts adds a row for each member of a value. Lists of plain values, and the arguments of jobs,
// are one row.
func (t *Table) AddFacts(path string, value gjson.Result) {
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case value.Type == gjson.Null:
	case last != "args" && (value.IsObject() || isListOfObjects(value)):
		n := 0
		value.ForEach(func(key, member gjson.Result) bool {
			inner := key.String()
			if value.IsArray() {
				inner = fmt.Sprint(n)
			}
			n++
			t.AddFacts(strings.TrimPrefix(path+"."+inner, "."), member)
			return true
		})
	case value.Type == gjson.Number && isTime(last) && value.Float() > 0:
		t.Add(path, humantime.Unix(value.Float()))
	case value.Type == gjson.Number:
		t.Add(path, value.Raw) // with all its digits
	case value.Type == gjson.JSON:
		t.Add(path, compact(value.Raw))
	default:
		t.Add(path, value.String())
	}
}

func isListOfObjects(value gjson.Result) bool {
	return value.IsArray() && strings.HasPrefix(strings.TrimSpace(value.Raw[1:]), "{")
}

// isTime reports whether the API's member of that name is a time, in seconds since 1970.
func isTime(name string) bool {
	switch name {
	case "at", "now", "since", "until", "beat", "timestamp":
		return true
	}
	return strings.HasSuffix(name, "_at")
}

func compact(raw string) string {
	var line bytes.Buffer
	if json.Compact(&line, []byte(raw)) != nil {
		return raw
	}
	return line.String()
}

// printYAML prints JSON as YAML. Members keep their order and numbers all their digits.
func printYAML(w io.Writer, body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	node, err := yamlNode(decoder)
	if err != nil {
		return err
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return err
	}
	return encoder.Close()
}

// yamlNode reads the next JSON value.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.MappingNode}
		if token == '[' {
			node.Kind = yaml.SequenceNode
		}
		for d.More() {
			item, err := yamlNode(d)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, item)
		}
		_, err := d.Token() // the closing bracket
		return node, err
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}, nil
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: token, Style: styleOf(token)}, nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil
}

// styleOf returns the style for a text: quoted if YAML would read it as something else.
func styleOf(text string) yaml.Style {
	var plain yaml.Node
	plain.SetString(text)
	if plain.Style != 0 {
		return plain.Style
	}
	var back any
	if err := yaml.Unmarshal([]byte(text), &back); err == nil && back == any(text) {
		return 0
	}
	return yaml.DoubleQuotedStyle
}

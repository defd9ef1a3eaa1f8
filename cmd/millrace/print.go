package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
)

// resultSettings say in which form a command prints its result.
type resultSettings struct {
	Output string `short:"o" enum:"table,wide,json,yaml,csv,ndjson" default:"${output}" placeholder:"FORM" help:"Form of the result: table, wide (a table with all columns, nothing cut), json, yaml, csv or ndjson (${output})."`
}

// Forms of a result. The table is the default.
const (
	formWide   = "wide"
	formJSON   = "json"
	formYAML   = "yaml"
	formCSV    = "csv"
	formNDJSON = "ndjson"
)

// printer writes a command's result in one form.
type printer struct {
	w     io.Writer
	form  string
	now   time.Time
	width int // of the terminal; 0 where there is none, or where nothing is to be cut
	color bool
}

func (s *resultSettings) printer(out output) *printer {
	p := &printer{w: out.Out, form: s.Output, now: time.Now(), width: out.width(), color: out.color()}
	if p.form == formWide {
		p.width = 0
	}
	return p
}

// whole reports whether the API's answer is printed with all its members, for programs.
func (p *printer) whole() bool {
	return p.form == formJSON || p.form == formYAML || p.form == formNDJSON
}

// forPeople reports whether sentences may stand beside the result.
func (p *printer) forPeople() bool { return !p.whole() && p.form != formCSV }

// say prints a line that people read and programs do not.
func (p *printer) say(format string, args ...any) error {
	if !p.forPeople() {
		return nil
	}
	_, err := fmt.Fprintf(p.w, format+"\n", args...)
	return err
}

// answer prints a JSON answer with all its members. Numbers keep all their digits.
func (p *printer) answer(body []byte) error {
	if !json.Valid(body) {
		return fmt.Errorf("the sidecar's answer is no JSON")
	}
	switch p.form {
	case formYAML:
		return printYAML(p.w, body)
	case formNDJSON:
		return printLines(p.w, body)
	}
	return printJSON(p.w, body)
}

// did reports what an action has changed: a sentence for people, the fields for programs.
func (p *printer) did(changed fields, format string, args ...any) error {
	switch {
	case p.whole():
		return p.answer(changed.json())
	case p.form == formCSV:
		return p.record(changed)
	}
	return p.say(format, args...)
}

// record prints fields as a CSV file with one record.
func (p *printer) record(changed fields) error {
	var names, values []string
	gjson.ParseBytes(changed.json()).ForEach(func(name, value gjson.Result) bool {
		names, values = append(names, name.String()), append(values, value.String())
		return true
	})
	return p.csv(names, [][]string{values})
}

func (p *printer) csv(titles []string, rows [][]string) error {
	w := csv.NewWriter(p.w)
	return w.WriteAll(append([][]string{titles}, rows...))
}

func (p *printer) csvLine(values ...string) error {
	w := csv.NewWriter(p.w)
	if err := w.Write(values); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// printJSON prints JSON, indented.
func printJSON(w io.Writer, body []byte) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, body, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err := w.Write(indented.Bytes())
	return err
}

// printLines prints the items of a list, each on a line of its own; what is no list is one line.
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

// facts print what is known of one thing: a line for each member, with the names of outer members in front.
func (p *printer) facts(body []byte) error {
	if p.whole() {
		return p.answer(body)
	}
	if !json.Valid(body) {
		return unreadable(fmt.Errorf("it is no JSON"))
	}
	t := &table{columns: []column{{"FIELD", plainKind}, {"VALUE", factKind}}, bare: true}
	addFacts(t, "", gjson.ParseBytes(body))
	return p.table(t)
}

// addFacts adds the members of a value to a table. Lists of plain values, and the arguments of jobs, are one line.
func addFacts(t *table, path string, value gjson.Result) {
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case value.Type == gjson.Null:
	case value.IsObject() && last != "args", value.IsArray() && strings.HasPrefix(strings.TrimSpace(value.Raw[1:]), "{") && last != "args":
		n := 0
		value.ForEach(func(key, member gjson.Result) bool {
			inner := key.String()
			if value.IsArray() {
				inner = fmt.Sprint(n)
			}
			n++
			addFacts(t, strings.TrimPrefix(path+"."+inner, "."), member)
			return true
		})
	case value.Type == gjson.Number && isTime(last) && value.Float() > 0:
		t.add(path, humantime.Unix(value.Float()))
	case value.Type == gjson.Number:
		t.add(path, value.Raw) // with all its digits
	case value.Type == gjson.JSON:
		t.add(path, compact(value.Raw))
	default:
		t.add(path, value.String())
	}
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

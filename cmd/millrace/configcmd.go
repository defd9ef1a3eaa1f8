package main

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type configCmd struct {
	sidecarSettings
	flags.SignIn `group:"Connection flags:"`
	flags.Redis  `group:"Connection flags:"`
	output.Result
}

// Run prints the settings as a configuration file that would have the same effect, except for the
// passwords.
func (c *configCmd) Run(out output.Streams) error {
	var lines yaml.Node
	lines.Kind = yaml.MappingNode
	addSettings(&lines, reflect.ValueOf(c.masked()))
	c.APIURL = broker.MaskURL(c.APIURL)
	addSettings(&lines, reflect.ValueOf(c.SignIn))
	c.RedisURL = broker.MaskURL(c.RedisURL)
	addSettings(&lines, reflect.ValueOf(c.Redis))
	text, err := yaml.Marshal(&lines)
	if err != nil {
		return err
	}
	p := c.Printer(out)
	if p.ForPeople() || c.Output == output.FormYAML {
		_, err = fmt.Fprintf(out.Out, "%s", text)
		return err
	}
	var settings output.Fields
	if err := lines.Decode(&settings); err != nil {
		return err
	}
	body, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	if p.Structured() {
		return p.Answer(body)
	}
	t := &output.Table{Columns: []output.Column{output.Plain("SETTING"), output.Plain("VALUE")}}
	t.AddFacts("", gjson.ParseBytes(body))
	return p.Table(t)
}

// addSettings adds the fields of a settings struct by their flags' names.
func addSettings(lines *yaml.Node, settings reflect.Value) {
	for i := range settings.NumField() {
		field := settings.Type().Field(i)
		name := field.Tag.Get("name")
		if field.Anonymous {
			addSettings(lines, settings.Field(i))
			continue
		}
		if name == "" { // no flag sets it
			continue
		}
		var key, value yaml.Node
		key.SetString(name)
		if err := value.Encode(settings.Field(i).Interface()); err != nil {
			value.SetString(err.Error())
		}
		lines.Content = append(lines.Content, &key, &value)
	}
}

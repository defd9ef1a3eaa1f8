package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

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

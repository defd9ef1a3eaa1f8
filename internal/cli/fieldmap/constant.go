package fieldmap

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// toJSON returns a value of the map as JSON. Numbers keep their digits.
func toJSON(node *yaml.Node) (string, error) {
	switch node.Kind {
	case yaml.AliasNode:
		return toJSON(node.Alias)
	case yaml.SequenceNode:
		items := []string{}
		for _, item := range node.Content {
			raw, err := toJSON(item)
			if err != nil {
				return "", err
			}
			items = append(items, raw)
		}
		return "[" + strings.Join(items, ",") + "]", nil
	case yaml.MappingNode:
		members := []string{}
		err := eachMember(node, func(name string, value *yaml.Node) error {
			raw, err := toJSON(value)
			members = append(members, quote(name)+":"+raw)
			return err
		})
		return "{" + strings.Join(members, ",") + "}", err
	}
	return scalar(node)
}

func scalar(node *yaml.Node) (string, error) {
	switch node.ShortTag() {
	case "!!null":
		return "null", nil
	case "!!bool":
		on, err := strconv.ParseBool(strings.ToLower(node.Value))
		if err != nil {
			return "", at(node, "%q is neither true nor false", node.Value)
		}
		return strconv.FormatBool(on), nil
	case "!!int", "!!float":
		if !json.Valid([]byte(node.Value)) {
			return "", at(node, "write the number %q as JSON has it", node.Value)
		}
		return node.Value, nil
	}
	return quote(node.Value), nil
}

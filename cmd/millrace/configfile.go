package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// configFile is what a configuration file sets, by flag name.
type configFile map[string]string

// readConfigFile reads a YAML file of `flag: value` lines.
func readConfigFile(r io.Reader) (kong.Resolver, error) {
	nodes := map[string]yaml.Node{}
	if err := yaml.NewDecoder(r).Decode(&nodes); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	file := configFile{}
	for key, node := range nodes {
		value, err := textOf(node)
		if err != nil {
			return nil, fmt.Errorf("configuration file: line %d: %s %w", node.Line, key, err)
		}
		file[key] = value
	}
	return file, nil
}

// textOf is a value as it would stand on the command line: a scalar as it is written, a list joined by commas.
func textOf(node yaml.Node) (string, error) {
	switch node.Kind {
	case yaml.ScalarNode:
		return node.Value, nil
	case yaml.SequenceNode:
		items := make([]string, len(node.Content))
		for i, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("must be a list of plain values")
			}
			items[i] = strings.ReplaceAll(item.Value, ",", `\,`)
		}
		return strings.Join(items, ","), nil
	}
	return "", errors.New("must be a plain value or a list")
}

// Validate refuses a key that is no setting, and names the one that may have been meant.
func (f configFile) Validate(app *kong.Application) error {
	known := settingNames(app.Node)
	for key := range f {
		if !slices.Contains(known, key) {
			return fmt.Errorf("configuration file: there is no setting %q, did you mean %q?", key, nearest(key, known))
		}
	}
	return nil
}

// Resolve gives a flag that stands neither on the command line nor in the environment its value from the file.
func (f configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	value, found := f[flag.Name]
	if !found || len(flag.Envs) == 0 || slices.ContainsFunc(flag.Envs, isSet) {
		return nil, nil // kong's way to hear that it is not set here
	}
	if flag.Tag.Type == urlsType {
		return strings.ReplaceAll(value, `\,`, ","), nil
	}
	return value, nil
}

func isSet(env string) bool {
	_, set := os.LookupEnv(env)
	return set
}

// settingNames lists the flags, of all commands, that a configuration file may set: those with an environment variable.
func settingNames(node *kong.Node) []string {
	var names []string
	for _, flag := range node.Flags {
		if len(flag.Envs) > 0 && flag.Name != "config" {
			names = append(names, flag.Name)
		}
	}
	for _, child := range node.Children {
		names = append(names, settingNames(child)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

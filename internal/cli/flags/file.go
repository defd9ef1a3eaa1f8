package flags

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

// file is what a configuration file sets, by flag name.
type file map[string]string

// ReadFile reads a configuration file: YAML lines of the form `flag: value`.
func ReadFile(r io.Reader) (kong.Resolver, error) {
	nodes := map[string]yaml.Node{}
	if err := yaml.NewDecoder(r).Decode(&nodes); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	settings := file{}
	for key, node := range nodes {
		value, err := textOf(node)
		if err != nil {
			return nil, fmt.Errorf("configuration file: line %d: %s %w", node.Line, key, err)
		}
		settings[key] = value
	}
	return settings, nil
}

// textOf returns a value as the command line has it: a scalar as it is written, a list joined by
// commas.
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

// Validate returns an error for a key that is no setting. The error names the most similar setting.
func (f file) Validate(app *kong.Application) error {
	known := settingNames(app.Node)
	for key := range f {
		if !slices.Contains(known, key) {
			return fmt.Errorf("configuration file: there is no setting %q, did you mean %q?", key, nearest(key, known))
		}
	}
	return nil
}

// Resolve returns the value of a flag that neither the command line nor the environment sets.
func (f file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	value, found := f[flag.Name]
	isSet := func(env string) bool { _, set := os.LookupEnv(env); return set }
	if !found || len(flag.Envs) == 0 || slices.ContainsFunc(flag.Envs, isSet) {
		return nil, nil // not set by the file
	}
	if flag.Tag.Type == URLs {
		return strings.ReplaceAll(value, `\,`, ","), nil
	}
	return value, nil
}

// settingNames returns the flags, of all commands, that a configuration file may set. They are
// those with an environment variable.
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

// nearest returns the candidate that takes the fewest edits to get to from what was written.
func nearest(written string, candidates []string) string {
	best, fewest := "", -1
	for _, c := range candidates {
		if n := distance(written, c); fewest < 0 || n < fewest {
			best, fewest = c, n
		}
	}
	return best
}

// distance returns how many characters must be added, removed or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

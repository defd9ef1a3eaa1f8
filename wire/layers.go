package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// MaxDefinition is the most bytes of one layer of a definition.
const MaxDefinition = 64 << 10

// Layers of a definition, from the weakest to the strongest. They are merged member by member.
const (
	LayerCode     = "code"
	LayerFile     = "file"
	LayerOperator = "operator"
)

// Layers are all layers, the weakest first.
var Layers = []string{LayerCode, LayerFile, LayerOperator}

var definedName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// DefinedLayer is one layer of a definition.
type DefinedLayer struct {
	Source string          `json:"source,omitempty"`
	Value  json.RawMessage `json:"value"`
	At     float64         `json:"at"`
	Actor  string          `json:"actor,omitempty"`
}

// Defined says that a layer of a definition was set or removed.
type Defined struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Layer  string          `json:"layer"`
	Source string          `json:"source,omitempty"`
	Op     string          `json:"op,omitempty"`    // paused or resumed, if that is all that was asked for
	Value  json.RawMessage `json:"value,omitempty"` // none: the layer is removed
	Since  int64           `json:"since,omitempty"` // ticks up to this time have an outcome, or are not the definition's
}

// decodeLayer decodes a definition, or a layer of one, that has only known members with values.
func decodeLayer(raw []byte, to any) error {
	if len(raw) > MaxDefinition {
		return fmt.Errorf("definition has %d bytes, at most %d are allowed", len(raw), MaxDefinition)
	}
	if err := shared.CheckRecord(raw); err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	return checkGiven(raw)
}

// checkGiven returns an error if a member has a value that would count as left out. The members of
// a rate and of overrides are checked too.
func checkGiven(raw []byte) (err error) {
	gjson.ParseBytes(raw).ForEach(func(name, value gjson.Result) bool {
		empty := value.Type == gjson.Null || value.Type == gjson.String && value.Str == ""
		switch name := name.String(); {
		case slices.Contains([]string{"every", "catch_up_max", "concurrency", "burst", "ahead", "max_waiting"}, name) && (empty || value.Num < 1):
			err = fmt.Errorf("member %q is a number from 1", name)
		case empty:
			err = fmt.Errorf("member %q is empty: leave it out, or say what it is to be", name)
		case name == "rate":
			err = checkGiven([]byte(value.Raw))
		case name == "overrides":
			value.ForEach(func(_, bound gjson.Result) bool {
				err = checkGiven([]byte(bound.Raw))
				return err == nil
			})
		}
		return err == nil
	})
	return err
}

// mergeLayers returns the definition that layers make. A stronger layer wins, member by member.
func mergeLayers(layers map[string]DefinedLayer) (json.RawMessage, error) {
	merged := map[string]json.RawMessage{}
	for _, name := range Layers {
		var members map[string]json.RawMessage
		l, set := layers[name]
		if !set {
			continue
		}
		if err := json.Unmarshal(l.Value, &members); err != nil {
			return nil, fmt.Errorf("definition: %w", err)
		}
		maps.Copy(merged, members)
	}
	return json.Marshal(merged)
}

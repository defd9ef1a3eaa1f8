package scheduler

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// A resume removes what a pause has written, so that no layer is left that says nothing.
func TestResumeLeavesNoEmptyLayer(t *testing.T) {
	layers := func(said map[string]string) map[string]wire.DefinedLayer {
		all := map[string]wire.DefinedLayer{}
		for layer, value := range said {
			all[layer] = wire.DefinedLayer{Value: json.RawMessage(value)}
		}
		return all
	}
	for name, c := range map[string]struct {
		layers map[string]string
		pauses bool
		want   string // the value of the operator's layer; - is no change
	}{
		"pause":                            {map[string]string{"file": `{"key":"a"}`}, true, `{"paused":true}`},
		"pause what is paused":             {map[string]string{"file": `{"paused":true}`}, true, "-"},
		"resume what a pause has paused":   {map[string]string{"file": `{}`, "operator": `{"paused":true}`}, false, ""},
		"resume what is changed, too":      {map[string]string{"file": `{}`, "operator": `{"ahead":3,"paused":true}`}, false, `{"ahead":3}`},
		"resume what only an operator set": {map[string]string{"operator": `{"paused":true}`}, false, `{}`},
		"resume what the file pauses":      {map[string]string{"file": `{"paused":true}`}, false, `{"paused":false}`},
		"resume what both pause":           {map[string]string{"code": `{"paused":true}`, "operator": `{"paused":true}`}, false, `{"paused":false}`},
		"resume what the file resumes":     {map[string]string{"code": `{"paused":true}`, "file": `{"paused":false}`, "operator": `{"paused":true}`}, false, ""},
		"resume what is not paused":        {map[string]string{"operator": `{"paused":false}`}, false, "-"},
	} {
		change, err := pausing(&definedKind{}, "a", layers(c.layers), c.pauses)
		require.NoError(t, err, name)
		if c.want == "-" {
			require.Nil(t, change, name)
			continue
		}
		require.NotNil(t, change, name)
		require.Equal(t, c.want, string(change.Value), name)
	}
	_, err := pausing(&definedKind{}, "a", layers(map[string]string{"file": `{"paused":7}`}), true)
	require.Error(t, err)
}

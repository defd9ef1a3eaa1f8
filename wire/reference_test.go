package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// member is one member of a JSON object as encoding/json reads it, to check gjson and sjson.
type member struct {
	name       string
	from, to   int // of the value
	escapedKey bool
}

func members(t require.TestingT, raw []byte) []member {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_, err := d.Token()
	require.NoError(t, err)
	var all []member
	for d.More() {
		before := d.InputOffset()
		name, err := d.Token()
		require.NoError(t, err)
		key := raw[before:d.InputOffset()]
		var value json.RawMessage
		require.NoError(t, d.Decode(&value))
		to := int(d.InputOffset())
		all = append(all, member{name.(string), to - len(value), to, bytes.IndexByte(key, '\\') >= 0})
	}
	return all
}

// setByReference sets a member as setRaw promises: the first one of that name, or a new one at the
// end.
func setByReference(t require.TestingT, raw []byte, name, value string) string {
	all := members(t, raw)
	for _, m := range all {
		if m.name == name {
			return string(raw[:m.from]) + value + string(raw[m.to:])
		}
	}
	end := bytes.LastIndexByte(raw, '}')
	comma := ","
	if len(all) == 0 {
		comma = ""
	}
	return fmt.Sprintf("%s%s%q:%s}", raw[:end], comma, name, value)
}

// requireObjectRead compares parseObject with encoding/json.
func requireObjectRead(t *testing.T, raw []byte, known map[string]bool) {
	t.Helper()
	o, err := shared.ParseObject(string(raw), known)
	seen := map[string]member{}
	faulty := false
	for _, m := range members(t, raw) {
		if !known[m.name] {
			continue
		}
		_, twice := seen[m.name]
		faulty = faulty || twice || m.escapedKey
		seen[m.name] = m
	}
	require.Equal(t, faulty, err != nil, "%v", err)
	if faulty {
		return
	}
	require.Len(t, o, len(seen))
	for name, m := range seen {
		require.Equal(t, string(raw[m.from:m.to]), o.At(name).Raw)
	}
}
